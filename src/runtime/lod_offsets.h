#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/tensor.h"

namespace millrace {

/// Whether offsets cut `count` rows or values into sequences: they start at 0, do not decrease, and end at `count`.
inline bool CutsWhole(std::span<const uint32_t> offsets, int64_t count) {
  return !offsets.empty() && offsets.front() == 0 && static_cast<int64_t>(offsets.back()) == count &&
         std::is_sorted(offsets.begin(), offsets.end());
}

/// The same for the first axis of a tensor.
inline bool CutsFirstAxis(std::span<const uint32_t> offsets, const Dims& dims) {
  return dims.rank() > 0 && CutsWhole(offsets, dims[0]);
}

}  // namespace millrace
