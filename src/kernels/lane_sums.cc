#include "kernels/lane_sums.h"

#include <cstring>

#include "kernels/simd_target.h"

namespace millrace {
namespace {

namespace two_lanes {
constexpr int kWidth = 2;
#include "kernels/lane_sums.inc"
}  // namespace two_lanes

#ifdef __x86_64__
// Without FMA, which would round a square's sum once. AVX-512 implies FMA, so its level also uses these.
MR_TARGET_BEGIN("avx2,no-fma")
namespace four_lanes {
constexpr int kWidth = 4;
#include "kernels/lane_sums.inc"
}  // namespace four_lanes
MR_TARGET_END
#else
namespace four_lanes = two_lanes;
#endif

}  // namespace

const LaneSumKernels& LaneSumsAt(SimdLevel level) {
  return level == SimdLevel::kBaseline ? two_lanes::kKernels : four_lanes::kKernels;
}

const LaneSumKernels& LaneSums() {
  static const LaneSumKernels& best = LaneSumsAt(DetectSimdLevel());
  return best;
}

}  // namespace millrace
