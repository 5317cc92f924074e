#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simd_dispatch.h"

/// Contains every intentional data race of Millrace.
///
/// Hogwild's workers read and write shared rows and dense parameters without locks. Formally that is a data race. In
/// practice these are aligned 4-byte floats, each read and written as a whole, and a lost update is noise that
/// stochastic descent tolerates. The functions are therefore not instrumented by ThreadSanitizer, which checks all
/// other code.
///
/// Vectors can have any length and alignment (16 bytes is fastest) and must not overlap. Every function applies the
/// same operations to each element, in the same order and without contraction, at each SimdLevel, so results are
/// bit-identical on every processor. Functions do not allocate, lock or fail.
namespace millrace::racy {

/// w -= lr * g.
struct SgdStep {
  float lr;
};

/// moment += g * g;  w -= lr * g / (sqrt(moment) + epsilon). As in Paddle and PyTorch.
struct AdagradStep {
  float lr;
  float epsilon;
};

/// m1 = beta1 * m1 + (1 - beta1) * g;  m2 = beta2 * m2 + (1 - beta2) * g * g;  w -= lr * m1 / (sqrt(m2) + epsilon). lr
/// and epsilon include the bias correction of the step; see MakeAdamStep.
struct AdamStep {
  float lr;
  float beta1;
  float beta2;
  float epsilon;
};

/// Paddle's Adam for given powers of the betas: lr * sqrt(1 - beta2_power) / (1 - beta1_power), and epsilon * sqrt(1 -
/// beta2_power).
AdamStep MakeAdamStep(float lr, float beta1, float beta2, float epsilon, float beta1_power, float beta2_power);

/// FTRL-proximal with learning rate power -1/2:
///     n' = n + g * g;  z += g - (sqrt(n') - sqrt(n)) / alpha * w;
///     w = |z| <= l1 ? 0 : (sign(z) * l1 - z) / (sqrt(n') / alpha + shrink)
/// McMahan's rule has shrink = beta / alpha + l2; Paddle's ftrl operator has shrink = 2 * l2.
struct FtrlStep {
  float alpha;
  float l1;
  float shrink;
};

/// How a sequence of rows is combined to one vector: the sum, times 1 / length, times 1 / sqrt(length).
enum class Pooling : uint8_t { kSum, kAverage, kSqrt };

/// The functions at one SimdLevel. Single vectors ("row") also serve dense parameters; the plural forms process a batch
/// of rows, so one indirect call covers thousands of rows.
struct Kernels {
  /// to = from.
  void (*copy_row)(const float* from, float* to, size_t n);
  /// to += from.
  void (*add_row)(const float* from, float* to, size_t n);
  /// y += a * x.
  void (*axpy_row)(float a, const float* x, float* y, size_t n);

  void (*sgd_row)(const SgdStep& step, const float* grad, float* w, size_t n);
  void (*adagrad_row)(const AdagradStep& step, const float* grad, float* w, float* moment, size_t n);
  void (*adam_row)(const AdamStep& step, const float* grad, float* w, float* moment1, float* moment2, size_t n);
  void (*ftrl_row)(const FtrlStep& step, const float* grad, float* w, float* squared, float* linear, size_t n);

  /// Pools each sequence of rows into `out + s * out_stride`: rows[index[offsets[s]]] ... rows[index[offsets[s+1]-1]],
  /// added in this order. A null row counts as zeros; an empty sequence gives zeros. Prefetches rows.
  void (*pool_rows)(const float* const* rows, const uint32_t* index, const uint32_t* offsets, size_t sequences,
                    size_t dim, Pooling pooling, float* out, size_t out_stride);

  /// The gradient of pool_rows: adds each sequence's gradient (times the pooling's factor) to the sums of its rows:
  /// sums[index[i] * dim, ...) for each i of the sequence. Other threads must not use the sums.
  void (*spread_rows)(const float* grad, size_t grad_stride, const uint32_t* index, const uint32_t* offsets,
                      size_t sequences, size_t dim, Pooling pooling, float* sums);

  /// Updates rows[i][0, dim) with grads[i * dim, ...); the state of a row starts at rows[i] + state_offset, its second
  /// part dim further. Skips null rows. Prefetches rows.
  void (*sgd_rows)(const SgdStep& step, float* const* rows, const float* grads, size_t count, size_t dim);
  void (*adagrad_rows)(const AdagradStep& step, float* const* rows, const float* grads, size_t count, size_t dim,
                       size_t state_offset);
  void (*adam_rows)(const AdamStep& step, float* const* rows, const float* grads, size_t count, size_t dim,
                    size_t state_offset);
  void (*ftrl_rows)(const FtrlStep& step, float* const* rows, const float* grads, size_t count, size_t dim,
                    size_t state_offset);

  /// The same for rows ids[i] of [V, dim] matrices: weights, and optimizer states as separate tensors. Ids must be
  /// below V.
  void (*sgd_matrix_rows)(const SgdStep& step, const uint64_t* ids, const float* grads, size_t count, size_t dim,
                          float* w, float* unused1, float* unused2);
  void (*adagrad_matrix_rows)(const AdagradStep& step, const uint64_t* ids, const float* grads, size_t count,
                              size_t dim, float* w, float* moment, float* unused);
  void (*adam_matrix_rows)(const AdamStep& step, const uint64_t* ids, const float* grads, size_t count, size_t dim,
                           float* w, float* moment1, float* moment2);
  void (*ftrl_matrix_rows)(const FtrlStep& step, const uint64_t* ids, const float* grads, size_t count, size_t dim,
                           float* w, float* squared, float* linear);
};

/// The functions of a level, which must not exceed DetectSimdLevel().
const Kernels& KernelsOf(SimdLevel level);
/// The functions of this processor's widest level.
const Kernels& Best();
/// The same functions, instrumented by ThreadSanitizer if enabled: for callers that hold the rows' locks.
const Kernels& Checked();

// Shorthands for one vector: Best()'s functions under plain names.
inline void CopyRow(const float* from, float* to, size_t n) { Best().copy_row(from, to, n); }
inline void AddRow(const float* from, float* to, size_t n) { Best().add_row(from, to, n); }
inline void AxpyRow(float a, const float* x, float* y, size_t n) { Best().axpy_row(a, x, y, n); }
inline void SgdRow(const SgdStep& step, const float* grad, float* w, size_t n) { Best().sgd_row(step, grad, w, n); }
inline void AdagradRow(const AdagradStep& step, const float* grad, float* w, float* moment, size_t n) {
  Best().adagrad_row(step, grad, w, moment, n);
}
inline void AdamRow(const AdamStep& step, const float* grad, float* w, float* moment1, float* moment2, size_t n) {
  Best().adam_row(step, grad, w, moment1, moment2, n);
}
inline void FtrlRow(const FtrlStep& step, const float* grad, float* w, float* squared, float* linear, size_t n) {
  Best().ftrl_row(step, grad, w, squared, linear, n);
}

}  // namespace millrace::racy
