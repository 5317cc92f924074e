#pragma once

#include "batch/slot_batch.h"

namespace millrace {

/// Appends rows [begin, end) of a batch to another one of the same schema, with their names, origins and spans.
///
/// Each row takes along the lines of its span from the row before it to itself; lines behind the last row of `from`
/// (bad and blank ones) go with that row. Rows must have origins.
void AppendRows(const SlotBatch& from, int begin, int end, SlotBatch& to);

/// Puts row `from` in the place of row `to`, before it; the rows between must not be asked for again.
void MoveRow(SlotBatch& batch, int from, int to);
/// Leaves the first `rows` rows.
void CutRows(SlotBatch& batch, int rows);

/// Takes rows for which `keeps(row)` is false out of a batch. Its spans stay: the lines of a row that is taken out go
/// with the row behind it, as those of a blank line.
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

/// Counts positions as part of a batch: lengthens its last span or begins another.
inline void AppendSpan(const BatchSpan& span, std::vector<BatchSpan>& spans) {
  if (!spans.empty() && spans.back().source == span.source && spans.back().end == span.begin) {
    spans.back().end = span.end;
  } else {
    spans.push_back(span);
  }
}
/// The same of position `position` of a source.
inline void ExtendSpans(std::vector<BatchSpan>& spans, uint32_t source, uint64_t position) {
  AppendSpan({source, position, position + 1}, spans);
}

}  // namespace millrace
