#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace millrace {

/// out = exp(x) / sum(exp(x)), without overflow. `out` may be `x`.
inline void SoftmaxRow(const float* x, int64_t width, float* out) {
  if (width == 0) return;
  const float most = *std::max_element(x, x + width);
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) {
    out[i] = std::exp(x[i] - most);
    sum += out[i];
  }
  for (int64_t i = 0; i < width; ++i) out[i] /= sum;
}

/// The gradient of x where `out` is its softmax. `x_grad` may be `grad`.
inline void SoftmaxGradRow(const float* out, const float* grad, int64_t width, float* x_grad) {
  float dot = 0;
  for (int64_t i = 0; i < width; ++i) dot += out[i] * grad[i];
  for (int64_t i = 0; i < width; ++i) x_grad[i] = out[i] * (grad[i] - dot);
}

/// out = x - log(sum(exp(x))), likewise.
inline void LogSoftmaxRow(const float* x, int64_t width, float* out) {
  if (width == 0) return;
  const float most = *std::max_element(x, x + width);
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += std::exp(x[i] - most);
  const float whole = most + std::log(sum);
  for (int64_t i = 0; i < width; ++i) out[i] = x[i] - whole;
}

/// The gradient of x where `out` is its log_softmax. `x_grad` may be `grad`.
inline void LogSoftmaxGradRow(const float* out, const float* grad, int64_t width, float* x_grad) {
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += grad[i];
  for (int64_t i = 0; i < width; ++i) x_grad[i] = grad[i] - std::exp(out[i]) * sum;
}

}  // namespace millrace
