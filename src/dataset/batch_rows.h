#pragma once

#include "batch/slot_batch.h"

namespace millrace {

/// Appends rows [begin, end) of `from` to a batch of the same schema, with names, origins and spans.
///
/// Each row brings the lines of its span between the previous row and itself. Lines after the last row of `from` (bad
/// and blank ones) go with that row. Rows must have origins.
void AppendRows(const SlotBatch& from, int begin, int end, SlotBatch& to);

/// Moves row `from` to position `to`, which is before it. The rows between become invalid.
void MoveRow(SlotBatch& batch, int from, int to);
/// Keeps only the first `rows` rows.
void CutRows(SlotBatch& batch, int rows);

/// Removes the rows for which `keeps(row)` is false. Spans stay: the lines of a removed row go with the next row, like
/// blank lines.
template <class Keeps>
void KeepRows(SlotBatch& batch, const Keeps& keeps) {
  int kept = 0;
  for (int row = 0; row < batch.rows(); ++row) {
    if (!keeps(row)) continue;
    if (kept < row) MoveRow(batch, row, kept);
    ++kept;
  }
  CutRows(batch, kept);
}

/// Adds positions to a batch: extends its last span or starts a new one.
inline void AppendSpan(const BatchSpan& span, std::vector<BatchSpan>& spans) {
  if (!spans.empty() && spans.back().source == span.source && spans.back().end == span.begin) {
    spans.back().end = span.end;
  } else {
    spans.push_back(span);
  }
}
/// Adds position `position` of a source.
inline void ExtendSpans(std::vector<BatchSpan>& spans, uint32_t source, uint64_t position) {
  AppendSpan({source, position, position + 1}, spans);
}

}  // namespace millrace
