#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "datafeed/column_feed.h"

namespace millrace {

/// Rows of lines with one JSON object each, from whose keys features make slots. A column "user.age" is the key "age"
/// of the object "user". Strings and numbers are taken literally, true and false are 1 and 0. Null, a missing key and
/// an empty array are missing; array elements are several values. The whole line is validated, including unused keys.
/// Create does not fail.
struct JsonColumnFeed {
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);
};

/// The columns for which a line has values. Fails with kBadData if the line is not a JSON object.
Result<std::vector<std::string>> JsonColumnNames(std::string_view line);

}  // namespace millrace
