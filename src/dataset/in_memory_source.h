#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "datafeed/column_sink.h"
#include "datafeed/packed_rows.h"
#include "dataset/dataset.h"
#include "dataset/pass_order.h"
#include "dataset/row_channels.h"

namespace millrace {

/// What the sources of a pass share and only read, but for the channels. Must outlive them.
struct InMemoryPass {
  const PackedRows* rows = nullptr;
  const RowLayout* layout = nullptr;
  const std::vector<RowHandle>* order = nullptr;
  PassOrder numbers;
  RowChannels* channels = nullptr;
  BatchPool* pool = nullptr;
};

/// Makes batches of one worker: takes a block of handles, reads its rows one after another, each asked for some rows
/// ahead, and scatters them into the columns of a pooled batch. Warm, it allocates nothing.
class InMemorySource final : public BatchSource {
 public:
  InMemorySource(const InMemoryPass& pass, const SlotSchema& schema, RowChannels::Cursor cursor)
      : pass_(&pass), sink_(schema), cursor_(cursor) {}

  Result<BatchPtr> Next(std::stop_token stop) override;

  // For EndPass, while the worker may still be at work.
  int64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)); }

 private:
  void AppendRows(uint64_t begin, uint64_t end, SlotBatch* batch);

  const InMemoryPass* pass_;
  ColumnSink sink_;
  RowChannels::Cursor cursor_;
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

}  // namespace millrace
