#pragma once

#include <string>
#include <string_view>

#include "runtime/op_kernel.h"

namespace millrace {

/// A float tensor that an operator reads: an intermediate value of its frame, or a parameter that other workers may be
/// writing. The latter is read through kernels/racy.h (update mode HOGWILD) or row by row under its lock (ROW_LOCK).
///
/// Belongs to one kernel; one thread. Reading a shared parameter copies it, into a buffer that is kept.
class FloatInput {
 public:
  /// Nothing is bound; Read must not be called.
  FloatInput() = default;

  static Result<FloatInput> Bind(const KernelContext& context, std::string_view parameter);
  /// Not bound() when the operator does not have the input.
  static Result<FloatInput> BindOptional(const KernelContext& context, std::string_view parameter);

  bool bound() const { return tensor_ != nullptr; }
  const Tensor& tensor() const { return *tensor_; }
  const Dims& dims() const { return tensor_->dims(); }
  const std::string& name() const { return name_; }

  /// kBadData, naming the variable and its size, when it does not hold `count` values; what is not bound passes. For
  /// what is as large as another input says: a program may bind a tensor of any size.
  Status Expect(int64_t count) const;

  /// The values as they are now. A shared parameter's are a copy, valid until the next Read.
  const float* Read();
  /// As Read, but Hogwild's parameters are shown in place: for oneDNN, which ThreadSanitizer does not see.
  const float* ReadInPlace();

 private:
  enum class Sharing : uint8_t { kPrivate, kRacy, kLocked };
  const float* ReadLocked();

  const Tensor* tensor_ = nullptr;
  std::string name_;
  Sharing sharing_ = Sharing::kPrivate;
  RowLocks* locks_ = nullptr;
  Tensor copy_;
};

/// How many floats of a parameter one row lock covers: a row of a matrix, all of a vector.
int64_t LockedRowWidth(const Dims& dims);

}  // namespace millrace
