#pragma once

#include <cstdint>

#include "kernels/simd_dispatch.h"

namespace millrace {

/// The passes of a fully connected layer's gradient beside its products, at one SimdLevel. Results are equal to the
/// last bit at each of them: a column is added up from the first row to the last.
struct FcGradientKernels {
  /// to[r][c] = out[r][c] > 0 ? grad[r][c] : 0, and sums[c] = the sum of column c of `to`; `sums` may be null.
  void (*relu)(const float* out, const float* grad, int64_t rows, int64_t width, float* to, float* sums);
  /// sums[c] = the sum of column c of `grad`.
  void (*column_sums)(const float* grad, int64_t rows, int64_t width, float* sums);
};

/// The kernels of a level, which must not be above DetectSimdLevel().
const FcGradientKernels& FcGradientAt(SimdLevel level);
/// The kernels of the widest level of this processor.
const FcGradientKernels& FcGradient();

}  // namespace millrace
