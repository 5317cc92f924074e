#include "kernels/softmax_row.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <cstring>
#include <limits>

#include "kernels/simd_target.h"

namespace millrace {
namespace {

// For rows too short for vectors. Sums in the order of the vector code, so that trailing values that become 0, like
// padding, do not change any bit, wherever the row ends.
namespace one_wide {
constexpr int kWidth = 1;
using Floats = float;
using Ints = int32_t;
Floats LoadPart(const float*, int, float rest) { return rest; }
template <class Op>
float FoldedVector(const Floats& v, const Op&) {
  return v;
}
void StorePart(const Floats&, int, float*) {}
#include "kernels/softmax_row.inc"
}  // namespace one_wide

namespace four_wide {
constexpr int kWidth = 4;
using Floats [[gnu::vector_size(16)]] = float;
using Ints [[gnu::vector_size(16)]] = int32_t;
Floats LoadPart(const float* x, int count, float rest) {
  Floats values = Floats{} + rest;
  for (int i = 0; i < count; ++i) values[i] = x[i];
  return values;
}
template <class Op>
float FoldedVector(const Floats& v, const Op& op) {
  const Floats pairs = op(v, __builtin_shufflevector(v, v, 2, 3, 2, 3));
  return op(pairs[0], pairs[1]);
}
void StorePart(const Floats& values, int count, float* to) {
  for (int i = 0; i < count; ++i) to[i] = values[i];
}
#include "kernels/softmax_row.inc"
}  // namespace four_wide

#ifdef __x86_64__
// Without FMA, which would round a product and its sum once. AVX-512 implies FMA, so its level also uses these.
MR_TARGET_BEGIN("avx2,no-fma")
namespace eight_wide {
constexpr int kWidth = 8;
using Floats [[gnu::vector_size(32)]] = float;
using Ints [[gnu::vector_size(32)]] = int32_t;
Ints First(int count) { return Ints{0, 1, 2, 3, 4, 5, 6, 7} < count; }
Floats LoadPart(const float* x, int count, float rest) {
  const Ints first = First(count);
  const Floats values = _mm256_maskload_ps(x, reinterpret_cast<__m256i>(first));
  return first ? values : Floats{} + rest;
}
template <class Op>
float FoldedVector(const Floats& v, const Op& op) {
  const Floats fours = op(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7));
  const Floats pairs = op(fours, __builtin_shufflevector(fours, fours, 2, 3, 2, 3, 2, 3, 2, 3));
  return op(pairs[0], pairs[1]);
}
void StorePart(const Floats& values, int count, float* to) {
  _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(First(count)), values);
}
#include "kernels/softmax_row.inc"
}  // namespace eight_wide
MR_TARGET_END
#else
namespace eight_wide = four_wide;
#endif

/// Rows with fewer values are processed one by one.
constexpr int64_t kShort = 6;

const SoftmaxKernels& Best() {
  static const SoftmaxKernels& best = SoftmaxAt(DetectSimdLevel());
  return best;
}

}  // namespace

const SoftmaxKernels& SoftmaxAt(SimdLevel level) {
  return level == SimdLevel::kBaseline ? four_wide::kKernels : eight_wide::kKernels;
}

void SoftmaxRow(const float* x, int64_t width, float* out) {
  (width < kShort ? one_wide::kKernels : Best()).row(x, width, out);
}
void SoftmaxGradRow(const float* out, const float* grad, int64_t width, float* x_grad) {
  (width < kShort ? one_wide::kKernels : Best()).grad_row(out, grad, width, x_grad);
}

}  // namespace millrace
