#include "ops/grad_input.h"

namespace millrace {

Result<GradInput> GradInput::Bind(const KernelContext& context, std::string_view parameter) {
  GradInput input;
  MR_ASSIGN(input.tensor_, context.Input(parameter));
  input.name_ = std::string(parameter) + " (\"" + context.InputName(parameter) + "\")";
  return input;
}

Status GradInput::Check(DType type, int64_t count) const {
  if (tensor_->dtype() == type && tensor_->numel() == count && (count == 0 || !tensor_->empty())) return Status::Ok();
  return InvalidConfig("input " + name_ + " is " + std::string(DTypeName(tensor_->dtype())) + " " +
                       tensor_->dims().ToString() + "; the forward operator's sizes ask for " + std::to_string(count) +
                       " values of type " + std::string(DTypeName(type)));
}

}  // namespace millrace
