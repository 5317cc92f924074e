#pragma once

#include <algorithm>

#include "ops/kernel.h"

namespace millrace {

/// A gradient to be added up: the values of `to`, resized like `like` and set to 0; null where nobody wants it. Valid
/// until `to` is resized; allocates only when it grows.
inline float* ClearedLike(const Tensor& like, Tensor* to) {
  if (to == nullptr) return nullptr;
  float* values = ResizeLike(like, to);
  std::fill_n(values, like.numel(), 0.0F);
  return values;
}

}  // namespace millrace
