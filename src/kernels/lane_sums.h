#pragma once

#include <cstdint>

#include "kernels/simd_dispatch.h"

namespace millrace {

/// Sums of `count` contiguous floats in double, at one SimdLevel.
///
/// Value i is added to sum i % 16 of sixteen sums, which are combined in a fixed order; the rest after the last full
/// sixteen is added one by one. Results are therefore bit-identical at all levels.
struct LaneSumKernels {
  double (*values)(const float* x, int64_t count);
  double (*absolutes)(const float* x, int64_t count);
  /// Of (x - center)^2.
  double (*squares)(const float* x, int64_t count, double center);
};

/// The kernels of a level, which must not exceed DetectSimdLevel().
const LaneSumKernels& LaneSumsAt(SimdLevel level);
/// The kernels of this processor's widest level.
const LaneSumKernels& LaneSums();

}  // namespace millrace
