#include "ops/float_input.h"

#include "kernels/racy.h"
#include "kernels/row_locks.h"

namespace millrace {

int64_t LockedRowWidth(const Dims& dims) { return dims.rank() < 2 ? dims.numel() : dims.Product(1, dims.rank()); }

Result<FloatInput> FloatInput::BindOptional(const KernelContext& context, std::string_view parameter) {
  FloatInput input;
  MR_ASSIGN(input.tensor_, context.OptionalInput(parameter));
  input.name_ = context.InputName(parameter);
  const FrameOptions& options = context.options();
  const bool shared = input.bound() && !options.read_only && !context.scope().Owns(input.name_);
  if (!shared) return input;
  if (options.update_mode == UpdateMode::kHogwild && options.workers > 1) input.sharing_ = Sharing::kRacy;
  if (options.update_mode == UpdateMode::kRowLock && options.row_locks != nullptr) {
    input.sharing_ = Sharing::kLocked;
    input.locks_ = options.row_locks;
  }
  return input;
}

Result<FloatInput> FloatInput::Bind(const KernelContext& context, std::string_view parameter) {
  MR_ASSIGN(FloatInput input, BindOptional(context, parameter));
  if (!input.bound()) {
    return InvalidConfig(context.op().type() + ": input " + std::string(parameter) + " is not bound");
  }
  return input;
}

Status FloatInput::Expect(int64_t count) const {
  if (tensor_ == nullptr || tensor_->numel() == count) return Status::Ok();
  return BadData("\"" + name_ + "\" " + tensor_->dims().ToString() + " must have " + std::to_string(count) + " values");
}

const float* FloatInput::Read() {
  if (sharing_ == Sharing::kPrivate) return tensor_->data<float>();
  if (sharing_ == Sharing::kLocked) return ReadLocked();
  float* copy = copy_.Resize<float>(tensor_->dims());
  racy::CopyRow(tensor_->data<float>(), copy, static_cast<size_t>(tensor_->numel()));
  return copy;
}

const float* FloatInput::ReadInPlace() { return sharing_ == Sharing::kLocked ? ReadLocked() : tensor_->data<float>(); }

const float* FloatInput::ReadLocked() {
  float* copy = copy_.Resize<float>(tensor_->dims());
  const float* values = tensor_->data<float>();
  const int64_t width = LockedRowWidth(tensor_->dims());
  for (int64_t at = 0; at < tensor_->numel(); at += width) {
    const RowGuard guard(*locks_, values + at);
    racy::Checked().copy_row(values + at, copy + at, static_cast<size_t>(width));
  }
  return copy;
}

}  // namespace millrace
