#pragma once

#include <cstdint>

#include "kernels/simd_dispatch.h"

namespace millrace {

/// C [m, n] = op(A) [m, k] * B [k, n] + bias, row-major and batch-invariant: each value sums its k products in order
/// and adds the bias last, so a row of C depends only on its row of A and on B. Scores of a row are therefore the same
/// in every batch.
///
/// The kernels do not allocate; any thread. Levels can differ in the last bits, because AVX2 and AVX-512 use fused
/// multiply-add; these two are bit-identical.
struct RowProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;  ///< A is [k, m]
};

/// The functions of one SimdLevel.
struct RowProductKernels {
  /// Size in floats of packed B: panels with a tile's number of columns, each with all of k.
  int64_t (*packed_floats)(int64_t k, int64_t n);
  /// Packs B [k, n], or with `transpose_b` [n, k].
  void (*pack)(const float* b, int64_t k, int64_t n, bool transpose_b, float* packed);
  /// `bias` (n floats) can be null.
  void (*run)(const RowProduct& product, const float* a, const float* packed, const float* bias, float* c);
  /// Size in floats of B's last columns, which do not fill a panel.
  int64_t (*tail_floats)(int64_t k, int64_t n);
  /// The same product with unpacked B [k, n], for few rows, where packing would cost more than the product. Packs the
  /// last columns into `tail`.
  void (*run_in_place)(const RowProduct& product, const float* a, const float* b, float* tail, const float* bias,
                       float* c);
};

/// The functions of a level, which must not exceed DetectSimdLevel().
const RowProductKernels& RowProductAt(SimdLevel level);
/// The functions of this processor's widest level.
const RowProductKernels& BestRowProduct();

}  // namespace millrace
