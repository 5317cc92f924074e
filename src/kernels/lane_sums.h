#pragma once

#include <cstdint>

#include "kernels/simd_dispatch.h"

namespace millrace {

/// Sums in double of `count` floats that lie one behind the other, at one SimdLevel.
///
/// Value i goes to the (i % 16)-th of sixteen sums, and those are added in a fixed order; what is left behind the last
/// whole sixteen is added one by one. Results are therefore equal to the last bit at each level.
struct LaneSumKernels {
  double (*values)(const float* x, int64_t count);
  double (*absolutes)(const float* x, int64_t count);
  /// Of (x - center)^2.
  double (*squares)(const float* x, int64_t count, double center);
};

/// The kernels of a level, which must not be above DetectSimdLevel().
const LaneSumKernels& LaneSumsAt(SimdLevel level);
/// The kernels of the widest level of this processor.
const LaneSumKernels& LaneSums();

}  // namespace millrace
