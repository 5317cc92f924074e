#pragma once

#include <cstdint>

#include "kernels/simd_dispatch.h"

namespace millrace {

/// C [m, n] = op(A) [m, k] * B [k, n] + bias, row-major, batch-invariant: each value adds its k products in their
/// order, and the bias last, so that a row of C depends on its row of A and on B, and on no other size. A model's
/// scores are therefore the same for every batch that a row may stand in.
///
/// The kernels allocate nothing and may be called by any thread. Levels differ in their last bits, because AVX2 and
/// AVX-512 round a product and its sum once (fused multiply-add); these two come to the same bits.
struct RowProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;  ///< A is [k, m]
};

/// The functions of one SimdLevel.
struct RowProductKernels {
  /// Floats of B in the order in which `run` reads it: panels of as many columns as a tile has, each with all of k.
  int64_t (*packed_floats)(int64_t k, int64_t n);
  /// Packs B [k, n], or with `transpose_b` [n, k].
  void (*pack)(const float* b, int64_t k, int64_t n, bool transpose_b, float* packed);
  /// `bias` (n floats) may be null.
  void (*run)(const RowProduct& product, const float* a, const float* packed, const float* bias, float* c);
  /// Floats of B's last columns, which do not fill a panel.
  int64_t (*tail_floats)(int64_t k, int64_t n);
  /// The same product of B as it lies, [k, n], for few rows, which packing would cost more than the product. Packs the
  /// last columns into `tail`.
  void (*run_in_place)(const RowProduct& product, const float* a, const float* b, float* tail, const float* bias,
                       float* c);
};

/// The functions of a level, which must not be above DetectSimdLevel().
const RowProductKernels& RowProductAt(SimdLevel level);
/// Those of the widest level of this processor.
const RowProductKernels& BestRowProduct();

}  // namespace millrace
