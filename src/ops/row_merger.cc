#include "ops/row_merger.h"

#include <algorithm>

#include "kernels/racy.h"

namespace millrace {

const SelectedRows& RowMerger::Merge(const SelectedRows& grad) {
  if (grad.merged) return grad;
  const size_t count = grad.rows.size();
  const bool has_table_rows = grad.has_table_rows();
  merged_.table_rows.Start(grad.table_rows.table());
  merged_.rows.resize(count);
  numbers_.resize(count);
  unique_.Start(count);
  uint32_t distinct = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t before = distinct;
    numbers_[i] = unique_.Number(grad.rows[i], merged_.rows.data(), &distinct);
    if (has_table_rows && distinct > before) merged_.table_rows.Append(grad.table_rows, i);
  }
  merged_.rows.resize(distinct);
  const int64_t width =
      grad.values.dims().rank() == 0 || count == 0 ? 1 : grad.values.numel() / static_cast<int64_t>(count);
  const auto rows = static_cast<int64_t>(merged_.rows.size());
  float* sums = merged_.values.Resize<float>({rows, width});
  std::fill_n(sums, rows * width, 0.0F);
  const float* values = grad.values.data<float>();
  for (size_t i = 0; i < count; ++i) {
    racy::AddRow(values + static_cast<int64_t>(i) * width, sums + static_cast<int64_t>(numbers_[i]) * width,
                 static_cast<size_t>(width));
  }
  merged_.height = grad.height;
  merged_.merged = true;
  return merged_;
}

}  // namespace millrace
