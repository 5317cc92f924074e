#pragma once

#include <cstdint>
#include <memory>

#include "core/status.h"

namespace millrace {

/// What one place in a program multiplies: C = relu(op(A) * op(B) + bias), row-major, without gaps between rows.
struct GemmSpec {
  bool transpose_a = false;  ///< A is [k, m]
  bool transpose_b = false;  ///< B is [n, k]
  bool bias = false;         ///< a row of n floats is added to each row
  bool relu = false;         ///< negative results become 0, NaN stays
  bool bf16 = false;         ///< inputs are rounded to bfloat16, sums are float; ignored where !CpuHasBf16()
};

/// True when this processor multiplies bfloat16 in hardware.
bool CpuHasBf16();

/// One matrix product of one kernel; the only place that calls oneDNN.
///
/// Keeps a compiled primitive for each of the last eight shapes it saw, and its scratchpad; a known shape costs no
/// allocation and no lock of ours. oneDNN 2.6 itself makes six to nine small allocations a call, for the map of
/// arguments that every way to execute a primitive fills, and takes one mutex: its interface has no way round them
/// (dnnl_sgemm has none of the map, but packs into memory that it allocates, and adds no bias). Float products that are
/// small (small_product.h) go round it, and make none. One thread at a time; runs in the calling thread alone, whatever
/// OMP_NUM_THREADS says.
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
  Result<Plan*> PlanFor(int64_t m, int64_t n, int64_t k);

  GemmSpec spec_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace millrace
