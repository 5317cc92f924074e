#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "datafeed/column_feed.h"

namespace millrace {

/// Rows of lines of libsvm, of whose columns features make slots: "label", and "1", "2" and so on, the values of these
/// indices. An index that a line does not name is missing. One thread.
class LibsvmColumnFeed final : public ColumnFeed {
 public:
  /// kInvalidConfig for a column that no line has.
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);

 private:
  LibsvmColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc)
      : ColumnFeed(schema, setup, desc) {}
  LineResult Read(std::string_view line) override;

  std::vector<std::pair<uint64_t, size_t>> wanted_;  ///< indices, rising, and the column of each
  int label_ = -1;                                   ///< the column; -1: it is not read
};

}  // namespace millrace
