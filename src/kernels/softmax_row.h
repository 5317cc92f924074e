#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/simd_dispatch.h"

namespace millrace {

/// out = exp(x) / sum(exp(x)), without overflow; below exp(-87), values are 0. `out` can be `x`. Each exp has an error
/// of at most two ulp. Bit-identical at each SimdLevel, and independent of trailing values that become 0.
void SoftmaxRow(const float* x, int64_t width, float* out);

/// The gradient of x if `out` is its softmax. `x_grad` can be `grad`. Bit-identical at each SimdLevel.
void SoftmaxGradRow(const float* out, const float* grad, int64_t width, float* x_grad);

/// The functions at one level, which must not exceed DetectSimdLevel().
struct SoftmaxKernels {
  void (*row)(const float* x, int64_t width, float* out);
  void (*grad_row)(const float* out, const float* grad, int64_t width, float* x_grad);
};
const SoftmaxKernels& SoftmaxAt(SimdLevel level);

/// out = x - log(sum(exp(x))), likewise.
inline void LogSoftmaxRow(const float* x, int64_t width, float* out) {
  if (width == 0) return;
  const float most = *std::max_element(x, x + width);
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += std::exp(x[i] - most);
  const float whole = most + std::log(sum);
  for (int64_t i = 0; i < width; ++i) out[i] = x[i] - whole;
}

/// The gradient of x if `out` is its log_softmax. `x_grad` can be `grad`.
inline void LogSoftmaxGradRow(const float* out, const float* grad, int64_t width, float* x_grad) {
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += grad[i];
  for (int64_t i = 0; i < width; ++i) x_grad[i] = grad[i] - std::exp(out[i]) * sum;
}

}  // namespace millrace
