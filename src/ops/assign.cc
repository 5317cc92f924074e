#include <cstring>

#include "ops/kernel.h"

namespace millrace {
namespace {

class AssignKernel : public BoundKernel<AssignKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (x_ == out_) return Status::Ok();
    const std::span<const uint32_t> lod = x_->lod();
    void* out = out_->ResizeRaw(x_->dtype(), x_->dims());
    if (x_->numel() > 0) std::memcpy(out, x_->raw_data(), static_cast<size_t>(x_->numel()) * SizeOf(x_->dtype()));
    out_->set_lod(lod);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
};

std::vector<OpDesc> AssignGrad(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("X")) return {};
  const OpDesc names = context.GradOp({}, {}, {"Out"}, {"X"});
  OpDesc grad;
  grad.set_type("assign");
  SetInput(grad, "X", InputArguments(names, "Out@GRAD"));
  SetOutput(grad, "Out", OutputArguments(names, "X@GRAD"));
  return {grad};
}

}  // namespace

void RegisterAssign(OpRegistry& registry) {
  registry.Add("assign")
      .Doc("Out = a copy of X.")
      .Input("X", "a tensor")
      .Output("Out", "like X")
      .InferShape(SameAsX)
      .Grad(AssignGrad)
      .Kernel<AssignKernel>();
}

}  // namespace millrace
