#include <algorithm>
#include <cmath>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/softmax_row.h"

namespace millrace {
namespace {

Status InferSoftmax(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_ASSIGN(const int axis, FrontAxis(context, context.op().Int("axis"), x.dims.rank()));
  if (axis != x.dims.rank() - 1) return context.Error("only the last axis is supported, of X " + x.dims.ToString());
  context.SetOutput("Out", x);
  return Status::Ok();
}

class SoftmaxKernel : public BoundKernel<SoftmaxKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const int64_t width = x_.dims()[-1];
    const int64_t count = x_.tensor().numel();
    float* out = ResizeLike(x_.tensor(), out_);
    for (int64_t at = 0; at < count; at += width) SoftmaxRow(x + at, width, out + at);
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
};

class SoftmaxGradKernel : public BoundKernel<SoftmaxGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_, context.Input("Out"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* out = out_->data<float>();
    if (out_->dims().rank() == 0) return InvalidConfig("input Out has no axes");
    const int64_t width = out_->dims()[-1];
    const int64_t count = out_->numel();
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* x_grad = ResizeLike(*out_, x_grad_);
    for (int64_t at = 0; at < count; at += width) SoftmaxGradRow(out + at, grad + at, width, x_grad + at);
    return Status::Ok();
  }

 private:
  const Tensor* out_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
};

}  // namespace

void RegisterSoftmax(OpRegistry& registry) {
  registry.Add("softmax")
      .Doc("Out = exp(X) / sum(exp(X)) along the last axis.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("axis", int64_t{-1}, "the last axis")
      .InferShape(InferSoftmax)
      .Grad(GradFromOut)
      .Kernel<SoftmaxKernel>();
  registry.Add("softmax_grad")
      .Doc("Gradient of softmax.")
      .Input("Out", "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Output("X@GRAD", "gradient of X")
      .Attr("axis", int64_t{-1}, "the last axis")
      .InferShape(InferGradients)
      .Gradient()
      .Kernel<SoftmaxGradKernel>();
}

}  // namespace millrace
