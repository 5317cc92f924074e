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

/// Reads rows from the bytes of a mapped file, for every worker of a FileInstantDataset. A class of its own beside
/// DataFeed, as there are no lines: to find where rows end is the work of one thread at a time, to copy them that of
/// any. Immutable.
class InstantFeed {
 public:
  /// Makes a feed, or says what in the desc it cannot follow. The feed may keep references to `schema`.
  using Maker =
      std::function<Result<std::unique_ptr<const InstantFeed>>(const SlotSchema& schema, const DataFeedDesc& desc)>;

  virtual ~InstantFeed() = default;
  /// As InstantFormat::FindRows.
  virtual Status FindRows(std::span<const uint8_t> file, size_t begin, int most, uint64_t row,
                          InstantFormat::Rows* rows) const = 0;
  /// Copies rows that FindRows gave to an empty batch; how many zeros it left out.
  virtual int64_t CopyRows(std::span<const uint8_t> file, const InstantFormat::Rows& rows, SlotBatch* batch) const = 0;
};

/// Rows as Paddle's feed of this name reads them (docs/formats/file_instant.md).
class MultiSlotFileInstantDataFeed final : public InstantFeed {
 public:
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
