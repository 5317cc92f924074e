#include "kernels/small_product.h"

#include <cstring>

#include "kernels/simd_target.h"

namespace millrace {
namespace {

namespace baseline {
constexpr int kLanes = 4;
#include "kernels/small_product.inc"
}  // namespace baseline

#ifdef __x86_64__
MR_TARGET_BEGIN("avx2,fma")
namespace avx2 {
constexpr int kLanes = 8;
#include "kernels/small_product.inc"
}  // namespace avx2
MR_TARGET_END

MR_TARGET_BEGIN(MR_TARGET_AVX512)
namespace avx512 {
namespace narrow {
constexpr int kLanes = 8;
#include "kernels/small_product.inc"
}  // namespace narrow
namespace wide {
constexpr int kLanes = 16;
#include "kernels/small_product.inc"
}  // namespace wide
void Run(const SmallProduct& p, const float* a, const float* b, const float* bias, float* c) {
  (p.n <= 8 ? narrow::Run : wide::Run)(p, a, b, bias, c);
}
}  // namespace avx512
MR_TARGET_END
constexpr SmallProductKernel kSmallProducts[] = {baseline::Run, avx2::Run, avx512::Run};
#else
constexpr SmallProductKernel kSmallProducts[] = {baseline::Run, baseline::Run, baseline::Run};
#endif

}  // namespace

SmallProductKernel SmallProductAt(SimdLevel level) { return kSmallProducts[static_cast<size_t>(level)]; }

SmallProductKernel BestSmallProduct() {
  static const SmallProductKernel best = SmallProductAt(DetectSimdLevel());
  return best;
}

}  // namespace millrace
