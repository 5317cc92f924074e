#pragma once

#include <cstdint>

#include "kernels/simd_dispatch.h"

namespace millrace {

/// C = op(A) * op(B) + bias of matrices so small that calling a library takes longer than multiplying.
struct SmallProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;  ///< A is [k, m]
  bool transpose_b = false;  ///< B is [n, k]

  /// Whether Run may take it: at most kMaxWork multiplications, and B as Run packs it at most kMaxPacked floats.
  bool Fits() const { return m * n * k <= kMaxWork && k * PackedWidth() <= kMaxPacked; }

  static constexpr int64_t kMaxWork = 1 << 15;
  static constexpr int64_t kMaxPacked = 1 << 12;
  int64_t PackedWidth() const { return n <= 8 ? 8 : (n + 15) / 16 * 16; }
};

/// c [m, n], row-major; `bias` (n floats, added to each row last) may be null. Every value adds its k products in
/// order, so that it does not depend on the sizes around it. Allocates nothing. `level` must not be above
/// DetectSimdLevel(); levels differ in their last bits.
using SmallProductKernel = void (*)(const SmallProduct& product, const float* a, const float* b, const float* bias,
                                    float* c);
SmallProductKernel SmallProductAt(SimdLevel level);
/// That of the widest level of this processor.
SmallProductKernel BestSmallProduct();

}  // namespace millrace
