#include "dataset/batch_rows.h"

#include <algorithm>
#include <string>
#include <vector>

namespace millrace {
namespace {

size_t Size(int n) { return static_cast<size_t>(n); }

template <class T, class Column>
void AppendRange(std::span<const T> from, size_t begin, size_t end, Column& to) {
  const std::span<const T> part = from.subspan(begin, end - begin);
  to.insert(to.end(), part.begin(), part.end());
}

void AppendTexts(std::span<const std::string> from, int begin, int end, int to_rows, std::vector<std::string>& to) {
  if (from.empty()) return;
  to.resize(std::max(to.size(), Size(to_rows + end - begin)));
  for (int i = begin; i < end; ++i) to[Size(to_rows + i - begin)] = from[Size(i)];
}

/// The position of a row's line.
uint64_t PositionOf(const RowOrigin& origin) { return origin.line - 1; }

/// Position in the spans of `from` where the lines of row `row` start: after the line of the previous row.
struct SpanPosition {
  size_t span = 0;
  uint64_t position = 0;
};

SpanPosition StartOfRow(const SlotBatch& from, int row) {
  const std::span<const BatchSpan> spans = from.spans();
  if (row == 0) return {0, spans.empty() ? 0 : spans[0].begin};
  if (row == from.rows()) return {spans.size(), 0};
  const RowOrigin& before = from.origins()[Size(row - 1)];
  for (size_t i = 0; i < spans.size(); ++i) {
    const uint64_t position = PositionOf(before);
    if (spans[i].source != before.file || position < spans[i].begin || position >= spans[i].end) continue;
    if (position + 1 < spans[i].end) return {i, position + 1};
    return {i + 1, i + 1 < spans.size() ? spans[i + 1].begin : 0};
  }
  return {spans.size(), 0};
}

void AppendSpans(const SlotBatch& from, int begin, int end, std::vector<BatchSpan>& to) {
  const std::span<const BatchSpan> spans = from.spans();
  const SpanPosition first = StartOfRow(from, begin);
  const SpanPosition last = StartOfRow(from, end);
  for (size_t i = first.span; i < spans.size() && i <= last.span; ++i) {
    BatchSpan part = spans[i];
    if (i == first.span) part.begin = first.position;
    if (i == last.span) part.end = last.position;
    if (part.begin >= part.end) continue;
    AppendSpan(part, to);
  }
}

}  // namespace

void AppendRows(const SlotBatch& from, int begin, int end, SlotBatch& to) {
  for (const SlotSpec& slot : from.schema().used()) {
    size_t first = Size(begin) * Size(slot.width);
    size_t last = Size(end) * Size(slot.width);
    SlotColumn& column = to.column(slot.id);
    if (!slot.is_dense) {
      const std::span<const uint32_t> offsets = from.offsets(slot.id);
      first = offsets[Size(begin)];
      last = offsets[Size(end)];
      const uint32_t base = column.offsets.back();
      for (int row = begin; row < end; ++row) {
        column.offsets.push_back(base + offsets[Size(row + 1)] - static_cast<uint32_t>(first));
      }
    }
    if (slot.type == SlotType::kUint64) {
      AppendRange(from.ids(slot.id), first, last, column.ids);
    } else {
      AppendRange(from.floats(slot.id), first, last, column.floats);
    }
  }
  AppendTexts(from.ins_ids(), begin, end, to.rows(), to.mutable_ins_ids());
  AppendTexts(from.contents(), begin, end, to.rows(), to.mutable_contents());
  AppendRange(from.origins(), Size(begin), Size(end), to.mutable_origins());
  AppendSpans(from, begin, end, to.mutable_spans());
  to.set_rows(to.rows() + end - begin);
}

void MoveRow(SlotBatch& batch, int from, int to) {
  const auto move = [](auto& values, size_t begin, size_t end, size_t at) {
    std::copy(values.begin() + static_cast<std::ptrdiff_t>(begin), values.begin() + static_cast<std::ptrdiff_t>(end),
              values.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (const SlotSpec& slot : batch.schema().used()) {
    SlotColumn& column = batch.column(slot.id);
    size_t begin = Size(from) * Size(slot.width);
    size_t end = begin + Size(slot.width);
    size_t at = Size(to) * Size(slot.width);
    if (!slot.is_dense) {
      begin = column.offsets[Size(from)];
      end = column.offsets[Size(from + 1)];
      at = column.offsets[Size(to)];
      column.offsets[Size(to + 1)] = static_cast<uint32_t>(at + end - begin);
    }
    if (slot.type == SlotType::kUint64) {
      move(column.ids, begin, end, at);
    } else {
      move(column.floats, begin, end, at);
    }
  }
  if (!batch.ins_ids().empty()) std::swap(batch.mutable_ins_ids()[Size(to)], batch.mutable_ins_ids()[Size(from)]);
  if (!batch.contents().empty()) std::swap(batch.mutable_contents()[Size(to)], batch.mutable_contents()[Size(from)]);
  if (!batch.origins().empty()) batch.mutable_origins()[Size(to)] = batch.origins()[Size(from)];
}

void CutRows(SlotBatch& batch, int rows) {
  for (const SlotSpec& slot : batch.schema().used()) {
    SlotColumn& column = batch.column(slot.id);
    size_t values = Size(rows) * Size(slot.width);
    if (!slot.is_dense) {
      values = column.offsets[Size(rows)];
      column.offsets.resize(Size(rows) + 1);
    }
    if (slot.type == SlotType::kUint64) {
      column.ids.resize(values);
    } else {
      column.floats.resize(values);
    }
  }
  if (!batch.origins().empty()) batch.mutable_origins().resize(Size(rows));
  batch.set_rows(rows);
}

}  // namespace millrace
