#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datafeed/column_feed.h"

namespace millrace {

/// Rows of lines of libsvm, of whose columns features make slots: "label", "qid", "index", a list of the indices whose
/// values are not 0, and "1", "2" and so on (from "0" on with LibsvmDesc.zero_based), the values of these indices. An
/// index that a line does not name is missing. One thread.
class LibsvmColumnFeed final : public ColumnFeed {
 public:
  /// kInvalidConfig for a column that no line has.
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);
  ValueNames names() const override;

 private:
  /// A feature that makes words of the values of several indices, and whether some are 1, and others.
  struct Hashed {
    std::string feature;
    bool has_ones;
    bool has_others;
  };

  LibsvmColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc)
      : ColumnFeed(schema, setup, desc) {}
  LineResult Read(std::string_view line) override;

  std::vector<std::pair<uint64_t, size_t>> wanted_;  ///< indices, rising, and the column of each
  uint64_t first_ = 1;                               ///< the least index
  int label_ = -1;                                   ///< the column; -1: it is not read
  int qid_ = -1;                                     ///< likewise
  int index_ = -1;                                   ///< likewise
  std::vector<std::string_view> indices_;            ///< of the line, without those of zeros
  std::vector<FeatureRow::List> lists_;              ///< by column; empty where none has several texts
  std::vector<Hashed> hashed_;
  std::vector<std::vector<size_t>> hashed_of_;  ///< by column, which of these
};

}  // namespace millrace
