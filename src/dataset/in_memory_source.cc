#include "dataset/in_memory_source.h"

#include <algorithm>
#include <chrono>

#include "dataset/line_batch.h"

namespace millrace {
namespace {

// Prefetch distance in rows: enough to hide memory latency.
constexpr uint64_t kRowsAhead = 4;

}  // namespace

InMemorySource::InMemorySource(const InMemoryPass& pass, const SlotSchema& schema, RowChannels::Cursor cursor)
    : pass_(&pass), sink_(pass.line_schema != nullptr ? *pass.line_schema : schema), cursor_(cursor) {
  if (pass.line_schema != nullptr) line_.emplace(*pass.line_schema);
  if (!pass.donors->active()) return;
  own_slots_.emplace(pass.donors->slots, false, sink_);
  donated_slots_.emplace(pass.donors->slots, true, sink_);
}

Result<BatchPtr> InMemorySource::Next(std::stop_token stop) {
  if (stop.stop_requested()) return Cancelled("stopped between batches");
  const std::optional<RowChannels::Taken> taken = pass_->channels->Take(cursor_);
  if (!taken) return BatchPtr();
  const auto start = std::chrono::steady_clock::now();
  BatchPtr batch = pass_->pool->Take();
  pass_->numbers.AppendSpans(taken->block.begin, taken->block.end, &batch->mutable_spans());
  MR_TRY(Fill(batch.get()));
  pass_->channels->Recycle(*taken);
  rows_.fetch_add(batch->rows(), std::memory_order_relaxed);
  const auto took = std::chrono::steady_clock::now() - start;
  nanoseconds_.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count(), std::memory_order_relaxed);
  return batch;
}

Status InMemorySource::Fill(SlotBatch* batch) {
  SlotBatch* const rows = line_ ? &*line_ : batch;
  if (line_) line_->Clear();
  sink_.Attach(rows);
  for (const BatchSpan& span : batch->spans()) AppendRows(span.begin, span.end, rows);
  sink_.Detach();
  return line_ ? ExpandLineBatch(*line_, *pass_->files, batch) : Status::Ok();
}

void InMemorySource::AppendRows(uint64_t begin, uint64_t end, SlotBatch* batch) {
  const PackedRows& rows = *pass_->rows;
  const std::vector<RowHandle>& order = *pass_->order;
  for (uint64_t i = begin; i < std::min(begin + kRowsAhead, end); ++i) rows.Prefetch(order[i]);
  for (uint64_t i = begin; i < end; ++i) {
    if (i + kRowsAhead < end) rows.Prefetch(order[i + kRowsAhead]);
    const RowOrigin origin = rows.Origin(order[i]);
    batch->mutable_origins().push_back(origin);
    AppendRow(order[i], origin);
  }
}

void InMemorySource::AppendRow(RowHandle handle, const RowOrigin& origin) {
  const uint8_t* const row = pass_->rows->Row(handle);
  if (!donated_slots_) [[likely]]
    return DecodeRow(*pass_->layout, row, sink_);
  sink_.BeginRow();
  DecodeRow(*pass_->layout, row, *own_slots_);
  DecodeRow(*pass_->layout, pass_->rows->Row(pass_->donors->Of(origin)), *donated_slots_);
  sink_.EndRow();
}

}  // namespace millrace
