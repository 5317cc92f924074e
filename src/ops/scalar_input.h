#pragma once

#include <string>

#include "ops/kernel.h"
#include "ops/var_dtype.h"

namespace millrace {

/// A number that an operator takes from an attribute, or from a tensor of one value where that is bound.
class ScalarInput {
 public:
  /// `attribute` is what the attribute says.
  static Result<ScalarInput> Bind(const KernelContext& context, const char* tensor, double attribute) {
    ScalarInput input;
    input.name_ = tensor;
    input.attribute_ = attribute;
    MR_ASSIGN(input.tensor_, context.OptionalInput(tensor));
    return input;
  }

  /// The number of this batch. kBadData for a tensor that does not hold a single one.
  Result<double> Read() const {
    if (tensor_ == nullptr) return attribute_;
    if (tensor_->empty() || tensor_->numel() != 1) {
      return BadData("input " + std::string(name_) + " is " + tensor_->dims().ToString() + "; it must hold one number");
    }
    return WithType(tensor_->dtype(),
                    [this](auto sample) { return static_cast<double>(*tensor_->data<decltype(sample)>()); });
  }

 private:
  const Tensor* tensor_ = nullptr;
  const char* name_ = nullptr;
  double attribute_ = 0;
};

/// An axis that an operator takes from an attribute, or from a tensor where that is bound.
class AxisInput {
 public:
  static Result<AxisInput> Bind(const KernelContext& context, const char* tensor, const char* attribute) {
    AxisInput input;
    MR_ASSIGN(input.axis_, ScalarInput::Bind(context, tensor, static_cast<double>(context.op().Int(attribute))));
    return input;
  }

  /// The axis of this batch, from the front. kBadData when a tensor of `rank` axes has no such axis.
  Result<int> Read(int rank) const {
    MR_ASSIGN(const double axis, axis_.Read());
    if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
    return BadData("there is no axis " + std::to_string(ConvertValue<int64_t>(axis)) + " in a tensor of " +
                   std::to_string(rank) + " axes");
  }

 private:
  ScalarInput axis_;
};

}  // namespace millrace
