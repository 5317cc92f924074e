#pragma once

#include <cstdint>
#include <memory>

#include "core/huge_buffer.h"
#include "core/status.h"

namespace millrace {

class PackedWeights;
struct RowProduct;

/// A matrix product in a program: C = relu(op(A) * op(B) + bias), row-major, with contiguous rows.
struct GemmSpec {
  bool transpose_a = false;  ///< A is [k, m]
  bool transpose_b = false;  ///< B is [n, k]
  bool bias = false;         ///< adds n floats to each row
  bool relu = false;         ///< replaces negative results by 0; NaN stays
  bool bf16 = false;         ///< rounds inputs to bfloat16, with float sums; ignored without CpuHasBf16()
  /// A row's product does not depend on other rows (row_product.h); used for scores. Always in float.
  bool batch_invariant = false;
  /// With batch_invariant and a parameter B, provides B packed; otherwise null. Must outlive the Gemm.
  PackedWeights* weights = nullptr;
};

/// Whether this processor multiplies bfloat16 in hardware.
bool CpuHasBf16();

/// The matrix product of one kernel; the only caller of oneDNN.
///
/// Batch-invariant and small products use RowProduct and do not allocate once they have seen the largest B; oneDNN
/// computes the others. For these, Gemm keeps a compiled primitive for each of the last eight shapes and their
/// scratchpad; a known shape costs no allocation and no lock of ours. oneDNN 2.6 itself makes six to nine small
/// allocations per call, for the map of arguments needed by every way to execute a primitive, and locks one mutex; its
/// interface does not allow avoiding this (dnnl_sgemm has no map, but allocates memory for packing and does not add a
/// bias). One thread at a time; runs only in the calling thread, regardless of OMP_NUM_THREADS.
class Gemm {
 public:
  explicit Gemm(const GemmSpec& spec);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  /// c [m, n] = a [m, k] * b [k, n] as specified; `bias` is read only with spec.bias. For k = 0 the product is zero;
  /// for m or n = 0 this is a no-op. Fails with kUnavailable without memory, kInternal if oneDNN fails.
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
  std::unique_ptr<Engine> engine_;  ///< created by the first product that oneDNN computes
  HugeBuffer packed_;               ///< B of a batch-invariant product without PackedWeights
  /// The last result of spec.weights.
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
