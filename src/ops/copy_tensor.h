#pragma once

#include <cstring>

#include "runtime/tensor.h"

namespace millrace {

/// Type, sizes, LoD and values of `from` on `to`, which is another tensor.
inline void CopyTensor(const Tensor& from, Tensor* to) {
  void* values = to->ResizeRaw(from.dtype(), from.dims());
  if (from.numel() > 0) std::memcpy(values, from.raw_data(), BytesOf(from));
  to->set_lod(from.lod());
}

}  // namespace millrace
