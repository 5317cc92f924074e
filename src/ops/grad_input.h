#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/op_kernel.h"

namespace millrace {

/// What a gradient operator of a program reads beside X and W: the gradient that arrives, or a value that the forward
/// operator kept. A program that was written elsewhere may bind a tensor of any size to it, so its size is asked for.
///
/// Belongs to one kernel; one thread.
class GradInput {
 public:
  /// Nothing is bound; Read must not be called.
  GradInput() = default;
  static Result<GradInput> Bind(const KernelContext& context, std::string_view parameter);
  /// Not bound() when the operator does not have the input.
  static Result<GradInput> BindOptional(const KernelContext& context, std::string_view parameter);
  /// One for each variable of a list; those that are "@EMPTY@" are not bound().
  static Result<std::vector<GradInput>> BindAll(const KernelContext& context, std::string_view parameter);

  bool bound() const { return tensor_ != nullptr; }
  const Tensor& tensor() const { return *tensor_; }

  /// kInvalidConfig, naming the variable and both sizes, when there are not `count` values of type T.
  template <class T = float>
  Result<const T*> Read(int64_t count) const {
    MR_TRY(Check(DTypeOf<T>::value, count));
    return tensor_->data<T>();
  }

 private:
  Status Check(DType type, int64_t count) const;

  const Tensor* tensor_ = nullptr;
  std::string name_;
};

}  // namespace millrace
