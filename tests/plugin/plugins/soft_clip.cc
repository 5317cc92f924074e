// A plugin as a user writes it: an operator with an attribute and a gradient.

#include <cmath>

#include "ops/float_input.h"
#include "ops/kernel.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

/// Forward without Out@GRAD, backward with it.
class SoftClipKernel : public BoundKernel<SoftClipKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_grad_, context.OptionalInput("Out@GRAD"));
    MR_ASSIGN(target_, context.Output(out_grad_ == nullptr ? "Out" : "X@GRAD"));
    limit_ = context.op().Float("limit");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const int64_t count = x_.tensor().numel();
    const float* grad = out_grad_ == nullptr ? nullptr : out_grad_->data<float>();
    float* to = ResizeLike(x_.tensor(), target_);
    for (int64_t i = 0; i < count; ++i) {
      const float t = std::tanh(x[i] / limit_);
      to[i] = grad == nullptr ? limit_ * t : grad[i] * (1 - t * t);
    }
    return Status::Ok();
  }

 private:
  FloatInput x_;
  const Tensor* out_grad_ = nullptr;
  Tensor* target_ = nullptr;
  float limit_ = 1;
};

Status InferSoftClip(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (!(context.op().Float("limit") > 0)) return context.Error("limit must be positive");
  context.SetOutput("Out", x);
  return Status::Ok();
}

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  registries.ops.Add("soft_clip")
      .Doc("Out = limit * tanh(X / limit).")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("limit", 1.0F, "what |Out| stays below")
      .InferShape(InferSoftClip)
      .Grad({.inputs = {"X"}})
      .Kernel<SoftClipKernel>();
  registries.ops.AddGradient("soft_clip").Kernel<SoftClipKernel>();
  return Status::Ok();
}
