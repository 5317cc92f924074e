#pragma once

#include <cstdint>

#include "kernels/simd_dispatch.h"

namespace millrace {

/// The elementwise parts of a fully connected layer's gradient, at one SimdLevel. Results are bit-identical at all
/// levels, because a column is summed from the first row to the last.
struct FcGradientKernels {
  /// to[r][c] = out[r][c] > 0 ? grad[r][c] : 0, and sums[c] = the sum of column c of `to`; `sums` may be null.
  void (*relu)(const float* out, const float* grad, int64_t rows, int64_t width, float* to, float* sums);
  /// sums[c] = the sum of column c of `grad`.
  void (*column_sums)(const float* grad, int64_t rows, int64_t width, float* sums);
};

/// The kernels of a level, which must not exceed DetectSimdLevel().
const FcGradientKernels& FcGradientAt(SimdLevel level);
/// The kernels of this processor's widest level.
const FcGradientKernels& FcGradient();

}  // namespace millrace
