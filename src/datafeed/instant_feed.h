#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "batch/slot_batch.h"
#include "core/status.h"
#include "datafeed/instant_rows.h"

namespace millrace {

class DataFeedDesc;

/// Reads rows from mapped files for every worker of a FileInstantDataset. Separate from DataFeed because there are no
/// lines: one thread at a time finds the ends of rows, any thread copies them. Immutable.
class InstantFeed {
 public:
  /// Creates a feed, which can keep references to `schema`. Fails with kInvalidConfig for an unsupported setting.
  using Maker =
      std::function<Result<std::unique_ptr<const InstantFeed>>(const SlotSchema& schema, const DataFeedDesc& desc)>;

  virtual ~InstantFeed() = default;
  /// Like InstantFormat::FindRows, with the same failures.
  virtual Status FindRows(std::span<const uint8_t> file, size_t begin, int most, uint64_t row,
                          InstantFormat::Rows* rows) const = 0;
  /// Copies the rows of FindRows to an empty batch; returns the number of dropped zeros.
  virtual int64_t CopyRows(std::span<const uint8_t> file, const InstantFormat::Rows& rows, SlotBatch* batch) const = 0;
};

/// Rows in the format of Paddle's feed of this name (docs/formats/file_instant.md).
class MultiSlotFileInstantDataFeed final : public InstantFeed {
 public:
  /// Does not fail.
  static Result<std::unique_ptr<const InstantFeed>> Make(const SlotSchema& schema, const DataFeedDesc& desc);
  MultiSlotFileInstantDataFeed(const SlotSchema& schema, bool allow_empty_slots, bool drop_zeros)
      : format_(schema, allow_empty_slots), drop_zeros_(drop_zeros) {}

  Status FindRows(std::span<const uint8_t> file, size_t begin, int most, uint64_t row,
                  InstantFormat::Rows* rows) const override {
    return format_.FindRows(file, begin, most, row, rows);
  }
  int64_t CopyRows(std::span<const uint8_t> file, const InstantFormat::Rows& rows, SlotBatch* batch) const override;

 private:
  InstantFormat format_;
  bool drop_zeros_;
};

}  // namespace millrace
