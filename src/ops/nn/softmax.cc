#include <vector>

#include "kernels/softmax_row.h"
#include "ops/axis_lines.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

/// A line along an axis, brought together where its values lie apart.
class GatheredLine {
 public:
  const float* Read(const float* from, const AxisLines& lines, int64_t first) {
    if (lines.inner == 1) return from + first;
    line_.resize(static_cast<size_t>(lines.along));
    for (int64_t k = 0; k < lines.along; ++k) line_[static_cast<size_t>(k)] = from[first + k * lines.inner];
    return line_.data();
  }
  /// Where to write a line of `to`, which Scatter then brings there.
  float* Target(float* to, const AxisLines& lines, int64_t first) {
    if (lines.inner == 1) return to + first;
    line_.resize(static_cast<size_t>(lines.along));
    return line_.data();
  }
  void Scatter(float* to, const AxisLines& lines, int64_t first) const {
    if (lines.inner == 1) return;
    for (int64_t k = 0; k < lines.along; ++k) to[first + k * lines.inner] = line_[static_cast<size_t>(k)];
  }

 private:
  std::vector<float> line_;
};

/// Row(x, width, out) on each line along an axis.
template <auto Row>
class LinesKernel : public BoundKernel<LinesKernel<Row>> {
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
      Row(x_line_.Read(x, lines, first), lines.along, out_line_.Target(out, lines, first));
      out_line_.Scatter(out, lines, first);
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  int64_t axis_ = -1;
  GatheredLine x_line_;
  GatheredLine out_line_;
};

/// Row(out, gradient of out, width, gradient of x) on each line.
template <auto Row>
class LinesGradKernel : public BoundKernel<LinesGradKernel<Row>> {
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
    MR_ASSIGN(const float* grad, out_grad_.Read(out_->numel()));
    float* x_grad = ResizeLike(*out_, x_grad_);
    lines.ForEach([&](int64_t, int64_t first) {
      Row(out_line_.Read(out, lines, first), grad_line_.Read(grad, lines, first), lines.along,
          x_grad_line_.Target(x_grad, lines, first));
      x_grad_line_.Scatter(x_grad, lines, first);
    });
    return Status::Ok();
  }

 private:
  const Tensor* out_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  int64_t axis_ = -1;
  GatheredLine out_line_;
  GatheredLine grad_line_;
  GatheredLine x_grad_line_;
};

/// What both have in common.
OpBuilder AddSoftmax(OpRegistry& registry, const std::string& type) {
  return registry.Add(type)
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .InferShape(InferAlongAxis)
      .Grad({.outputs = {"Out"}});
}

}  // namespace

void RegisterSoftmax(OpRegistry& registry) {
  AddSoftmax(registry, "softmax")
      .Doc("Out = exp(X) / sum(exp(X)) along an axis.")
      .Attr("data_format", std::string("AnyLayout"), "as Paddle writes it; changes nothing here")
      .Kernel<LinesKernel<SoftmaxRow>>();
  registry.AddGradient("softmax").Kernel<LinesGradKernel<SoftmaxGradRow>>();
  AddSoftmax(registry, "log_softmax")
      .Doc("Out = X - log(sum(exp(X))) along an axis.")
      .Kernel<LinesKernel<LogSoftmaxRow>>();
  registry.AddGradient("log_softmax").Kernel<LinesGradKernel<LogSoftmaxGradRow>>();
}

}  // namespace millrace
