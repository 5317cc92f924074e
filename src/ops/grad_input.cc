#include "ops/grad_input.h"

#include <utility>

namespace millrace {

Result<GradInput> GradInput::Bind(const KernelContext& context, std::string_view parameter) {
  MR_TRY(context.Input(parameter).status());
  return BindOptional(context, parameter);
}

Result<GradInput> GradInput::BindOptional(const KernelContext& context, std::string_view parameter) {
  MR_ASSIGN(std::vector<GradInput> all, BindAll(context, parameter));
  return all.empty() ? GradInput() : std::move(all.front());
}

Result<std::vector<GradInput>> GradInput::BindAll(const KernelContext& context, std::string_view parameter) {
  MR_ASSIGN(const std::vector<const Tensor*> tensors, context.Inputs(parameter));
  const std::vector<std::string> names = InputArguments(context.op().desc(), parameter);
  std::vector<GradInput> all(tensors.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].tensor_ = tensors[i];
    all[i].name_ = std::string(parameter) + " (\"" + names[i] + "\")";
  }
  return all;
}

Status GradInput::Check(DType type, int64_t count) const {
  if (tensor_->dtype() == type && tensor_->numel() == count && (count == 0 || !tensor_->empty())) return Status::Ok();
  return InvalidConfig("input " + name_ + " is " + std::string(DTypeName(tensor_->dtype())) + " " +
                       tensor_->dims().ToString() + "; the forward operator's sizes ask for " + std::to_string(count) +
                       " values of type " + std::string(DTypeName(type)));
}

}  // namespace millrace
