#include <algorithm>
#include <cmath>

#include "ops/axis_lines.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

class LogSoftmaxKernel : public BoundKernel<LogSoftmaxKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const AxisLines lines = AxisLines::Of(x_.dims(), axis_);
    float* out = ResizeLike(x_.tensor(), out_);
    lines.ForEach([&](int64_t, int64_t first) {
      const int64_t end = first + lines.along * lines.inner;
      float largest = x[first];
      for (int64_t at = first; at < end; at += lines.inner) largest = std::max(largest, x[at]);
      float sum = 0;
      for (int64_t at = first; at < end; at += lines.inner) sum += std::exp(x[at] - largest);
      const float whole = largest + std::log(sum);
      for (int64_t at = first; at < end; at += lines.inner) out[at] = x[at] - whole;
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  int64_t axis_ = -1;
};

class LogSoftmaxGradKernel : public BoundKernel<LogSoftmaxGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_, context.Input("Out"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    if (out_->dims().rank() == 0) return InvalidConfig("input Out has no axes");
    const float* out = out_->data<float>();
    const AxisLines lines = AxisLines::Of(out_->dims(), axis_);
    MR_ASSIGN(const float* grad, out_grad_.Read(out_->numel()));
    float* x_grad = ResizeLike(*out_, x_grad_);
    lines.ForEach([&](int64_t, int64_t first) {
      const int64_t end = first + lines.along * lines.inner;
      float sum = 0;
      for (int64_t at = first; at < end; at += lines.inner) sum += grad[at];
      for (int64_t at = first; at < end; at += lines.inner) x_grad[at] = grad[at] - std::exp(out[at]) * sum;
    });
    return Status::Ok();
  }

 private:
  const Tensor* out_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  int64_t axis_ = -1;
};

}  // namespace

void RegisterLogSoftmax(OpRegistry& registry) {
  registry.Add("log_softmax")
      .Doc("Out = X - log(sum(exp(X))) along an axis.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .InferShape(InferAlongAxis)
      .Grad(GradFromOut)
      .Kernel<LogSoftmaxKernel>();
  registry.Add("log_softmax_grad")
      .Doc("Gradient of log_softmax.")
      .Input("Out", "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Output("X@GRAD", "gradient of X")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .InferShape(InferGradients)
      .Gradient()
      .Kernel<LogSoftmaxGradKernel>();
}

}  // namespace millrace
