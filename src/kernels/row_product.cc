#include "kernels/row_product.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <cstddef>

#include "kernels/simd_target.h"

namespace millrace {
namespace {

namespace baseline {
constexpr int kLanes = 4, kWide = 3, kTall = 4;
using Vector [[gnu::vector_size(16)]] = float;
Vector Load(const float* from) {
  Vector values;
  __builtin_memcpy(&values, from, sizeof(values));
  return values;
}
void Store(float* to, const Vector& values) { __builtin_memcpy(to, &values, sizeof(values)); }
Vector Same(float value) { return Vector{value, value, value, value}; }
Vector MulAdd(const Vector& a, const Vector& b, const Vector& sum) { return a * b + sum; }
#include "kernels/row_product.inc"
}  // namespace baseline

#ifdef __x86_64__
MR_TARGET_BEGIN("avx2,fma")
namespace avx2 {
constexpr int kLanes = 8, kWide = 3, kTall = 4;
using Vector = __m256;
Vector Load(const float* from) { return _mm256_loadu_ps(from); }
void Store(float* to, const Vector& values) { _mm256_storeu_ps(to, values); }
Vector Same(float value) { return _mm256_set1_ps(value); }
Vector MulAdd(const Vector& a, const Vector& b, const Vector& sum) { return _mm256_fmadd_ps(a, b, sum); }
#include "kernels/row_product.inc"
}  // namespace avx2
MR_TARGET_END

MR_TARGET_BEGIN(MR_TARGET_AVX512)
namespace avx512 {
constexpr int kLanes = 16, kWide = 3, kTall = 8;
using Vector = __m512;
Vector Load(const float* from) { return _mm512_loadu_ps(from); }
void Store(float* to, const Vector& values) { _mm512_storeu_ps(to, values); }
Vector Same(float value) { return _mm512_set1_ps(value); }
Vector MulAdd(const Vector& a, const Vector& b, const Vector& sum) { return _mm512_fmadd_ps(a, b, sum); }
#include "kernels/row_product.inc"
}  // namespace avx512
MR_TARGET_END
constexpr const RowProductKernels* kLevels[] = {&baseline::kKernels, &avx2::kKernels, &avx512::kKernels};
#else
constexpr const RowProductKernels* kLevels[] = {&baseline::kKernels, &baseline::kKernels, &baseline::kKernels};
#endif

}  // namespace

const RowProductKernels& RowProductAt(SimdLevel level) { return *kLevels[static_cast<size_t>(level)]; }

const RowProductKernels& BestRowProduct() {
  static const RowProductKernels& best = RowProductAt(DetectSimdLevel());
  return best;
}

}  // namespace millrace
