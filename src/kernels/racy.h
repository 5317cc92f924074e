#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simd_dispatch.h"

/// Every deliberate data race of Millrace is in here and nowhere else.
///
/// Hogwild's workers read and write shared rows and dense parameters without locks. Formally that is a data race; in
/// fact these are plain aligned 4-byte floats, each of which is read and written whole, and a lost update is noise that
/// stochastic descent bears. The functions are therefore hidden from ThreadSanitizer, which sees everything else.
///
/// All vectors may be of any length and alignment (16 bytes is fastest) and must not overlap. Every function does the
/// same operations on each element, in the same order and without contraction, at each SimdLevel: results are equal to
/// the last bit on every processor. No function allocates, locks or fails.
namespace millrace::racy {

/// w -= lr * g.
struct SgdStep {
  float lr;
};

/// moment += g * g;  w -= lr * g / (sqrt(moment) + epsilon). Paddle's and PyTorch's.
struct AdagradStep {
  float lr;
  float epsilon;
};

/// m1 = beta1 * m1 + (1 - beta1) * g;  m2 = beta2 * m2 + (1 - beta2) * g * g;  w -= lr * m1 / (sqrt(m2) + epsilon).
/// Both lr and epsilon carry the correction of the step's number; see MakeAdamStep.
struct AdamStep {
  float lr;
  float beta1;
  float beta2;
  float epsilon;
};

/// Paddle's Adam at a step whose powers of the betas are given: lr * sqrt(1 - beta2_power) / (1 - beta1_power), and
/// epsilon * sqrt(1 - beta2_power).
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

/// How the rows of a sequence become one vector: their sum, times 1 / length, times 1 / sqrt(length).
enum class Pooling : uint8_t { kSum, kAverage, kSqrt };

/// The functions at one SimdLevel. Single vectors ("Row") serve dense parameters as well; the plural forms take a whole
/// batch of rows, so that one indirect call pays for thousands of rows.
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
  /// added in this order. A null row counts as zeros; an empty sequence gives zeros. Rows are fetched ahead.
  void (*pool_rows)(const float* const* rows, const uint32_t* index, const uint32_t* offsets, size_t sequences,
                    size_t dim, Pooling pooling, float* out, size_t out_stride);

  /// The reverse: adds the gradient of each sequence's vector (times the pooling's factor) to the sums of its rows:
  /// sums[index[i] * dim, ...) for each i of the sequence. The sums belong to the caller alone.
  void (*spread_rows)(const float* grad, size_t grad_stride, const uint32_t* index, const uint32_t* offsets,
                      size_t sequences, size_t dim, Pooling pooling, float* sums);

  /// Updates rows[i][0, dim) with grads[i * dim, ...); the state of a row begins at rows[i] + state_offset, its second
  /// part dim further. Null rows are left out. Rows are fetched ahead.
  void (*sgd_rows)(const SgdStep& step, float* const* rows, const float* grads, size_t count, size_t dim);
  void (*adagrad_rows)(const AdagradStep& step, float* const* rows, const float* grads, size_t count, size_t dim,
                       size_t state_offset);
  void (*adam_rows)(const AdamStep& step, float* const* rows, const float* grads, size_t count, size_t dim,
                    size_t state_offset);
  void (*ftrl_rows)(const FtrlStep& step, float* const* rows, const float* grads, size_t count, size_t dim,
                    size_t state_offset);

  /// The same for rows ids[i] of [V, dim] matrices: weights, and the optimizer's state beside them as tensors of their
  /// own. Ids must be below V.
  void (*sgd_matrix_rows)(const SgdStep& step, const uint64_t* ids, const float* grads, size_t count, size_t dim,
                          float* w, float* unused1, float* unused2);
  void (*adagrad_matrix_rows)(const AdagradStep& step, const uint64_t* ids, const float* grads, size_t count,
                              size_t dim, float* w, float* moment, float* unused);
  void (*adam_matrix_rows)(const AdamStep& step, const uint64_t* ids, const float* grads, size_t count, size_t dim,
                           float* w, float* moment1, float* moment2);
  void (*ftrl_matrix_rows)(const FtrlStep& step, const uint64_t* ids, const float* grads, size_t count, size_t dim,
                           float* w, float* squared, float* linear);
};

/// The functions of a level, which must not be above DetectSimdLevel().
const Kernels& KernelsOf(SimdLevel level);
/// The functions of the widest level of this processor.
const Kernels& Best();
/// The same functions with ThreadSanitizer, if it is there, looking on: for callers that hold the rows' locks.
const Kernels& Checked();

// Shorthands for one vector: Best()'s functions under their plain names.
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
