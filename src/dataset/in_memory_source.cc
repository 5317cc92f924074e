#include "dataset/in_memory_source.h"

#include <algorithm>
#include <chrono>

#include "datafeed/row_decoder.h"

namespace millrace {
namespace {

// Rows between the one that is read and the one that is asked for: enough to hide the way to memory.
constexpr uint64_t kRowsAhead = 4;

}  // namespace

Result<BatchPtr> InMemorySource::Next(std::stop_token stop) {
  if (stop.stop_requested()) return Cancelled("stopped between batches");
  const std::optional<RowChannels::Taken> taken = pass_->channels->Take(cursor_);
  if (!taken) return BatchPtr();
  const auto start = std::chrono::steady_clock::now();
  BatchPtr batch = pass_->pool->Take();
  pass_->numbers.AppendSpans(taken->block.begin, taken->block.end, &batch->mutable_spans());
  sink_.Attach(batch.get());
  for (const BatchSpan& span : batch->spans()) AppendRows(span.begin, span.end, batch.get());
  sink_.Detach();
  pass_->channels->GiveOn(*taken);
  rows_.fetch_add(batch->rows(), std::memory_order_relaxed);
  const auto took = std::chrono::steady_clock::now() - start;
  nanoseconds_.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count(), std::memory_order_relaxed);
  return batch;
}

void InMemorySource::AppendRows(uint64_t begin, uint64_t end, SlotBatch* batch) {
  const PackedRows& rows = *pass_->rows;
  const std::vector<RowHandle>& order = *pass_->order;
  for (uint64_t i = begin; i < std::min(begin + kRowsAhead, end); ++i) rows.Prefetch(order[i]);
  for (uint64_t i = begin; i < end; ++i) {
    if (i + kRowsAhead < end) rows.Prefetch(order[i + kRowsAhead]);
    batch->mutable_origins().push_back(rows.Origin(order[i]));
    DecodeRow(*pass_->layout, rows.Row(order[i]), sink_);
  }
}

}  // namespace millrace
