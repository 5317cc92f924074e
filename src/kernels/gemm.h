#pragma once

#include <cstdint>
#include <memory>

#include "core/huge_buffer.h"
#include "core/status.h"

namespace millrace {

class PackedWeights;
struct RowProduct;

/// What one place in a program multiplies: C = relu(op(A) * op(B) + bias), row-major, without gaps between rows.
struct GemmSpec {
  bool transpose_a = false;  ///< A is [k, m]
  bool transpose_b = false;  ///< B is [n, k]
  bool bias = false;         ///< a row of n floats is added to each row
  bool relu = false;         ///< negative results become 0, NaN stays
  bool bf16 = false;         ///< inputs are rounded to bfloat16, sums are float; ignored where !CpuHasBf16()
  /// A row's product does not depend on the rows beside it (row_product.h): for scores. Always in float.
  bool batch_invariant = false;
  /// With batch_invariant, where B is found packed, if B is a parameter; else null. Outlives the Gemm.
  PackedWeights* weights = nullptr;
};

/// True when this processor multiplies bfloat16 in hardware.
bool CpuHasBf16();

/// One matrix product of one kernel; the only place that calls oneDNN.
///
/// Batch-invariant products and those that are small take RowProduct and allocate nothing once they have seen the
/// largest B; oneDNN does the others. For these, Gemm keeps a compiled primitive for each of the last eight shapes and
/// their scratchpad; a known shape costs no allocation and no lock of ours. oneDNN 2.6 itself makes six to nine small
/// allocations per call, for the map of arguments that every way to execute a primitive fills, and takes one mutex:
/// its interface has no way round them (dnnl_sgemm has none of the map, but packs into memory that it allocates, and
/// adds no bias). One thread at a time; runs in the calling thread only, whatever OMP_NUM_THREADS says.
class Gemm {
 public:
  explicit Gemm(const GemmSpec& spec);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  /// c [m, n] = a [m, k] * b [k, n] as the spec says; `bias` is read only with spec.bias. With k = 0 the product is
  /// zero; with m or n = 0 there is nothing to do. kUnavailable without memory for it, kInternal when oneDNN refuses.
  Status Run(int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* bias, float* c);

 private:
  struct Plan;
  struct Engine;
  Status Multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* bias, float* c);
  void MultiplyRows(const RowProduct& product, const float* a, const float* b, const float* bias, float* c);
  const float* Packed(const RowProduct& product, const float* b);
  Status MultiplyByOneDnn(int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* bias, float* c);
  Result<Plan*> PlanFor(int64_t m, int64_t n, int64_t k);

  GemmSpec spec_;
  std::unique_ptr<Engine> engine_;  ///< made by the first product that oneDNN does
  HugeBuffer packed_;               ///< B of a batch-invariant product that no PackedWeights has
  /// What spec.weights gave last.
  struct Known {
    const float* b = nullptr;
    int64_t k = 0;
    int64_t n = 0;
    uint64_t generation = 0;
    const float* packed = nullptr;
  };
  Known known_;
};

}  // namespace millrace
