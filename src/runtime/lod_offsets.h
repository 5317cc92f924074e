#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "runtime/tensor.h"

namespace millrace {

/// True for offsets that cut `count` rows or values into sequences: they begin at 0, never fall, and end at `count`.
inline bool CutsWhole(std::span<const uint32_t> offsets, int64_t count) {
  return !offsets.empty() && offsets.front() == 0 && static_cast<int64_t>(offsets.back()) == count &&
         std::is_sorted(offsets.begin(), offsets.end());
}

/// The same of the first axis of a tensor.
inline bool CutsFirstAxis(std::span<const uint32_t> offsets, const Dims& dims) {
  return dims.rank() > 0 && CutsWhole(offsets, dims[0]);
}

}  // namespace millrace
