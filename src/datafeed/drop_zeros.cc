#include "datafeed/drop_zeros.h"

#include <cmath>

namespace millrace {
namespace {

/// Moves kept values to the front of their column; returns the number of removed ones.
template <class Column, class IsZero>
int64_t Compact(Column& values, UninitializedVector<uint32_t>& offsets, const IsZero& is_zero) {
  size_t kept = 0;
  size_t begin = 0;
  for (size_t row = 1; row < offsets.size(); ++row) {
    const size_t end = offsets[row];
    const size_t first = kept;
    for (size_t i = begin; i < end; ++i) {
      if (!is_zero(values[i])) values[kept++] = values[i];
    }
    if (kept == first && end > begin) values[kept++] = 0;
    offsets[row] = static_cast<uint32_t>(kept);
    begin = end;
  }
  const auto gone = static_cast<int64_t>(values.size() - kept);
  values.resize(kept);
  return gone;
}

}  // namespace

int64_t DropZeros(SlotBatch& batch) {
  int64_t gone = 0;
  for (const SlotSpec& slot : batch.schema().used()) {
    if (slot.is_dense) continue;
    SlotColumn& column = batch.column(slot.id);
    gone += slot.type == SlotType::kFloat ? Compact(column.floats, column.offsets,
                                                    [](float v) { return std::fabs(static_cast<double>(v)) < 1e-6; })
                                          : Compact(column.ids, column.offsets, [](uint64_t id) { return id == 0; });
  }
  return gone;
}

}  // namespace millrace
