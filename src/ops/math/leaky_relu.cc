#include "kernels/not_a_number.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferLeakyRelu(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// Forward without Out@GRAD, backward with it.
class LeakyReluKernel : public BoundKernel<LeakyReluKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    const bool backward = context.op().info().is_gradient;
    if (backward) {
      MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    }
    MR_ASSIGN(target_, context.Output(backward ? "X@GRAD" : "Out"));
    alpha_ = context.op().Float("alpha");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const int64_t count = x_.tensor().numel();
    const float* from = x;
    if (out_grad_.bound()) {
      MR_ASSIGN(from, out_grad_.Read(count));
    }
    float* to = ResizeLike(x_.tensor(), target_);
    for (int64_t i = 0; i < count; ++i) to[i] = x[i] > 0 ? from[i] : alpha_ * from[i] + ZeroOrNan(x[i]);
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput out_grad_;
  Tensor* target_ = nullptr;
  float alpha_ = 0;
};

}  // namespace

void RegisterLeakyRelu(OpRegistry& registry) {
  registry.Add("leaky_relu")
      .Doc("Out = X, times alpha where it is negative.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("alpha", 0.02F, "slope below 0")
      .InferShape(InferLeakyRelu)
      .Grad({.inputs = {"X"}})
      .Kernel<LeakyReluKernel>();
  registry.AddGradient("leaky_relu").Kernel<LeakyReluKernel>();
}

}  // namespace millrace
