#include <algorithm>
#include <cmath>

#include "ops/axis_lines.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/softmax_row.h"

namespace millrace {
namespace {

class SoftmaxKernel : public BoundKernel<SoftmaxKernel> {
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
    const int64_t count = x_.tensor().numel();
    float* out = ResizeLike(x_.tensor(), out_);
    if (lines.inner == 1) {
      for (int64_t at = 0; at < count; at += lines.along) SoftmaxRow(x + at, lines.along, out + at);
      return Status::Ok();
    }
    line_.resize(static_cast<size_t>(lines.along));
    lines.ForEach([&](int64_t, int64_t first) {
      for (int64_t k = 0; k < lines.along; ++k) line_[static_cast<size_t>(k)] = x[first + k * lines.inner];
      SoftmaxRow(line_.data(), lines.along, line_.data());
      for (int64_t k = 0; k < lines.along; ++k) out[first + k * lines.inner] = line_[static_cast<size_t>(k)];
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  int64_t axis_ = -1;
  std::vector<float> line_;
};

class SoftmaxGradKernel : public BoundKernel<SoftmaxGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_, context.Input("Out"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* out = out_->data<float>();
    if (out_->dims().rank() == 0) return InvalidConfig("input Out has no axes");
    const AxisLines lines = AxisLines::Of(out_->dims(), axis_);
    const int64_t count = out_->numel();
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* x_grad = ResizeLike(*out_, x_grad_);
    if (lines.inner == 1) {
      const int64_t width = lines.along;
      for (int64_t at = 0; at < count; at += width) SoftmaxGradRow(out + at, grad + at, width, x_grad + at);
      return Status::Ok();
    }
    lines.ForEach([&](int64_t, int64_t first) {
      float dot = 0;
      for (int64_t k = 0; k < lines.along; ++k) dot += out[first + k * lines.inner] * grad[first + k * lines.inner];
      for (int64_t k = 0; k < lines.along; ++k) {
        const int64_t at = first + k * lines.inner;
        x_grad[at] = out[at] * (grad[at] - dot);
      }
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

void RegisterSoftmax(OpRegistry& registry) {
  registry.Add("softmax")
      .Doc("Out = exp(X) / sum(exp(X)) along an axis.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .Attr("data_format", std::string("AnyLayout"), "as Paddle writes it; changes nothing here")
      .InferShape(InferAlongAxis)
      .Grad(GradFromOut)
      .Kernel<SoftmaxKernel>();
  registry.Add("softmax_grad")
      .Doc("Gradient of softmax.")
      .Input("Out", "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Output("X@GRAD", "gradient of X")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .InferShape(InferGradients)
      .Gradient()
      .Kernel<SoftmaxGradKernel>();
}

}  // namespace millrace
