#include <algorithm>
#include <cmath>

#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferHuber(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta y, context.Input("Y"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(ExpectDType(context, "Y", y, DType::kFloat32));
  if (!MayEqual(x.dims, y.dims)) {
    return context.Error("shapes differ: X " + x.dims.ToString() + ", Y " + y.dims.ToString());
  }
  if (context.op().Float("delta") <= 0) return context.Error("delta must be above 0");
  context.SetOutput("Out", x);
  context.SetOutput("Residual", x);
  return Status::Ok();
}

class HuberKernel : public BoundKernel<HuberKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.Input("Y"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(residual_, context.Output("Residual"));
    delta_ = context.op().Float("delta");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t count = x_->numel();
    if (y_->numel() != count) {
      return BadData("shapes differ: X " + x_->dims().ToString() + ", Y " + y_->dims().ToString());
    }
    const float* x = x_->data<float>();
    const float* y = y_->data<float>();
    float* residual = ResizeLike(*x_, residual_);
    float* out = ResizeLike(*x_, out_);
    for (int64_t i = 0; i < count; ++i) {
      residual[i] = y[i] - x[i];
      const float size = std::abs(residual[i]);
      out[i] = size <= delta_ ? 0.5F * size * size : delta_ * (size - 0.5F * delta_);
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* y_ = nullptr;
  Tensor* out_ = nullptr;
  Tensor* residual_ = nullptr;
  float delta_ = 1;
};

class HuberGradKernel : public BoundKernel<HuberGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(residual_, context.Input("Residual"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(y_grad_, context.OptionalOutput("Y@GRAD"));
    delta_ = context.op().Float("delta");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const float* grad, out_grad_.Read(residual_->numel()));
    Write(-1, grad, x_grad_);
    Write(1, grad, y_grad_);
    return Status::Ok();
  }

 private:
  void Write(float sign, const float* grad, Tensor* to) const {
    if (to == nullptr) return;
    const float* residual = residual_->data<float>();
    const int64_t count = residual_->numel();
    float* values = ResizeLike(*residual_, to);
    for (int64_t i = 0; i < count; ++i) values[i] = sign * grad[i] * std::min(std::max(residual[i], -delta_), delta_);
  }

  const Tensor* residual_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* y_grad_ = nullptr;
  float delta_ = 1;
};

Status InferHuberGrad(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta residual, context.Input("Residual"));
  context.SetOutput("X@GRAD", residual);
  context.SetOutput("Y@GRAD", residual);
  return Status::Ok();
}

}  // namespace

void RegisterHuberLoss(OpRegistry& registry) {
  const std::string delta = "where the square ends and the straight line begins";
  registry.Add("huber_loss")
      .Doc("Half the square of Y - X near 0, a straight line beyond delta.")
      .Input("X", "any shape")
      .Input("Y", "of the same shape")
      .Output("Out", "of the same shape")
      .Output("Residual", "Y - X")
      .Attr("delta", 1.0F, delta)
      .InferShape(InferHuber)
      .Grad({.outputs = {"Residual"}, .to = {"X", "Y"}})
      .Kernel<HuberKernel>();
  registry.AddGradient("huber_loss").InferShape(InferHuberGrad).Kernel<HuberGradKernel>();
}

}  // namespace millrace
