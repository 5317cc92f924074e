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

}  // namespace millrace
