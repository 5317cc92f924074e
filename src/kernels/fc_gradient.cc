#include "kernels/fc_gradient.h"

#include <algorithm>

#include "kernels/not_a_number.h"

namespace millrace {
namespace {

// The bodies below are written once and compiled for each level: a function that is always inlined takes on the target
// of the function it is inlined into.

[[gnu::always_inline]] inline void ReluBody(const float* __restrict out, const float* __restrict grad, int64_t rows,
                                            int64_t width, float* __restrict to, float* __restrict sums) {
  if (sums != nullptr) std::fill_n(sums, width, 0.0F);
  for (int64_t r = 0; r < rows; ++r, out += width, grad += width, to += width) {
    if (sums == nullptr) {
      for (int64_t c = 0; c < width; ++c) to[c] = out[c] > 0 ? grad[c] : ZeroOrNan(out[c]);
    } else {
      for (int64_t c = 0; c < width; ++c) {
        const float value = out[c] > 0 ? grad[c] : ZeroOrNan(out[c]);
        to[c] = value;
        sums[c] += value;
      }
    }
  }
}

[[gnu::always_inline]] inline void SumsBody(const float* __restrict grad, int64_t rows, int64_t width,
                                            float* __restrict sums) {
  std::fill_n(sums, width, 0.0F);
  for (int64_t r = 0; r < rows; ++r, grad += width) {
    for (int64_t c = 0; c < width; ++c) sums[c] += grad[c];
  }
}

void ReluBaseline(const float* out, const float* grad, int64_t rows, int64_t width, float* to, float* sums) {
  ReluBody(out, grad, rows, width, to, sums);
}
void SumsBaseline(const float* grad, int64_t rows, int64_t width, float* sums) { SumsBody(grad, rows, width, sums); }

#ifdef __x86_64__
[[gnu::target("avx2")]] void ReluAvx2(const float* out, const float* grad, int64_t rows, int64_t width, float* to,
                                      float* sums) {
  ReluBody(out, grad, rows, width, to, sums);
}
[[gnu::target("avx2")]] void SumsAvx2(const float* grad, int64_t rows, int64_t width, float* sums) {
  SumsBody(grad, rows, width, sums);
}
[[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512")]] void ReluAvx512(
    const float* out, const float* grad, int64_t rows, int64_t width, float* to, float* sums) {
  ReluBody(out, grad, rows, width, to, sums);
}
[[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512")]] void SumsAvx512(const float* grad,
                                                                                              int64_t rows,
                                                                                              int64_t width,
                                                                                              float* sums) {
  SumsBody(grad, rows, width, sums);
}
constexpr FcGradientKernels kKernels[] = {{ReluBaseline, SumsBaseline}, {ReluAvx2, SumsAvx2}, {ReluAvx512, SumsAvx512}};
#else
constexpr FcGradientKernels kKernels[] = {
    {ReluBaseline, SumsBaseline}, {ReluBaseline, SumsBaseline}, {ReluBaseline, SumsBaseline}};
#endif

}  // namespace

const FcGradientKernels& FcGradientAt(SimdLevel level) { return kKernels[static_cast<size_t>(level)]; }

const FcGradientKernels& FcGradient() {
  static const FcGradientKernels& best = FcGradientAt(DetectSimdLevel());
  return best;
}

}  // namespace millrace
