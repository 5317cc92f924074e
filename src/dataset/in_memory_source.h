#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "datafeed/column_sink.h"
#include "datafeed/packed_rows.h"
#include "datafeed/row_decoder.h"
#include "dataset/dataset.h"
#include "dataset/pass_order.h"
#include "dataset/row_channels.h"

namespace millrace {

/// The rows that donate values of some slots to other rows (InMemoryDataset::SlotsShuffle).
struct SlotDonors {
  std::vector<bool> slots;  ///< by SlotId; empty: none
  std::vector<RowHandle> candidates;
  uint64_t seed = 0;

  bool active() const { return !slots.empty(); }
  RowHandle Of(const RowOrigin& origin) const {
    return candidates[HashedNumber(Mix64(seed, origin.file), origin.line) % candidates.size()];
  }
};

/// State that the sources of a pass share; only the channels change. Must outlive the sources.
struct InMemoryPass {
  const PackedRows* rows = nullptr;
  const RowLayout* layout = nullptr;
  const std::vector<RowHandle>* order = nullptr;
  const SlotDonors* donors = nullptr;
  const SlotSchema* line_schema = nullptr;  ///< if rows are whole batches; null otherwise
  const std::vector<std::string>* files = nullptr;
  PassOrder numbers;
  RowChannels* channels = nullptr;
  BatchPool* pool = nullptr;
};

/// Assembles batches for one worker: takes a block of handles, reads its rows with prefetching, and scatters them into
/// the columns of a pooled batch. Does not allocate when warm.
class InMemorySource final : public BatchSource {
 public:
  InMemorySource(const InMemoryPass& pass, const SlotSchema& schema, RowChannels::Cursor cursor);

  Result<BatchPtr> Next(std::stop_token stop) override;

  // For EndPass; the worker may still run.
  int64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)); }

 private:
  Status Fill(SlotBatch* batch);
  void AppendRows(uint64_t begin, uint64_t end, SlotBatch* batch);
  void AppendRow(RowHandle handle, const RowOrigin& origin);

  const InMemoryPass* pass_;
  ColumnSink sink_;
  std::optional<SlotBatch> line_;  ///< with pass_->line_schema: the row before expansion
  std::optional<PickedSlots> own_slots_;
  std::optional<PickedSlots> donated_slots_;
  RowChannels::Cursor cursor_;
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

}  // namespace millrace
