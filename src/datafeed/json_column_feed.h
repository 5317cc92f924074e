#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "datafeed/column_feed.h"

namespace millrace {

/// Rows of lines with a JSON object each, of whose keys features make slots. A column "user.age" is the key "age" of
/// the object that "user" has. Texts are themselves, numbers as they are written, true and false 1 and 0; null, what is
/// not there and an empty array are missing; the elements of an array are several values. Every byte of a line is
/// checked, keys that nothing takes too.
struct JsonColumnFeed {
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);
};

/// The columns that a line has values for; kBadData where it is no JSON object.
Result<std::vector<std::string>> JsonColumnNames(std::string_view line);

}  // namespace millrace
