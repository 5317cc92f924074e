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

/// Rows of libsvm lines, from whose columns features make slots. The columns are "label", "qid", "index" (a list of the
/// indices with values other than 0), and "1", "2" and so on (from "0" with LibsvmDesc.zero_based), the values of these
/// indices. An index not in the line is missing. One thread.
class LibsvmColumnFeed final : public ColumnFeed {
 public:
  /// Fails with kInvalidConfig for a column that lines cannot have.
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);
  ValueNames names() const override;

 private:
  /// A feature that hashes values of several indices, and whether values 1 or others occurred.
  struct Hashed {
    std::string feature;
    bool has_ones;
    bool has_others;
  };

  LibsvmColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc)
      : ColumnFeed(schema, setup, desc) {}
  LineResult Read(std::string_view line) override;

  std::vector<std::pair<uint64_t, size_t>> wanted_;  ///< indices, ascending, with their columns
  uint64_t first_ = 1;                               ///< smallest index
  int label_ = -1;                                   ///< column; -1: not read
  int qid_ = -1;                                     ///< column; -1: not read
  int index_ = -1;                                   ///< column; -1: not read
  std::vector<std::string_view> indices_;            ///< indices in the line with values other than 0
  std::vector<FeatureRow::List> lists_;              ///< by column; empty if no column has several values
  std::vector<Hashed> hashed_;
  std::vector<std::vector<size_t>> hashed_of_;  ///< by column: indices in hashed_
};

}  // namespace millrace
