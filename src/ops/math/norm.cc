#include <algorithm>
#include <cmath>

#include "core/numbers.h"
#include "kernels/lane_sums.h"
#include "kernels/not_a_number.h"
#include "ops/axis_lines.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferNorm(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(FrontAxis(context, context.op().Int("axis"), x.dims.rank()).status());
  context.SetOutput("Out", x);
  x.dims = ReducedDims(x.dims, context.op().Int("axis"), true);
  context.SetOutput("Norm", x);
  return Status::Ok();
}

class NormKernel : public BoundKernel<NormKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(norm_, context.Output("Norm"));
    axis_ = context.op().Int("axis");
    epsilon_ = context.op().Float("epsilon");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const AxisLines lines = AxisLines::Of(x_.dims(), axis_);
    const float* x = x_.Read();
    float* norm = norm_->Resize<float>(ReducedDims(x_.dims(), axis_, true));
    float* out = ResizeLike(x_.tensor(), out_);
    lines.ForEach([&](int64_t line, int64_t first) {
      double sum = 0;
      for (int64_t k = 0; k < lines.along; ++k) {
        const auto value = static_cast<double>(x[first + k * lines.inner]);
        sum += value * value;
      }
      norm[line] = static_cast<float>(std::sqrt(sum + static_cast<double>(epsilon_)));
      for (int64_t k = 0; k < lines.along; ++k) {
        out[first + k * lines.inner] = x[first + k * lines.inner] / norm[line];
      }
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  Tensor* norm_ = nullptr;
  int64_t axis_ = -1;
  float epsilon_ = 0;
};

class NormGradKernel : public BoundKernel<NormGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(norm_, GradInput::Bind(context, "Norm"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const AxisLines lines = AxisLines::Of(x_.dims(), axis_);
    const float* x = x_.Read();
    MR_ASSIGN(const float* norm, norm_.Read(lines.count()));
    MR_ASSIGN(const float* grad, out_grad_.Read(x_.dims().numel()));
    float* x_grad = ResizeLike(x_.tensor(), x_grad_);
    lines.ForEach([&](int64_t line, int64_t first) {
      float dot = 0;
      for (int64_t k = 0; k < lines.along; ++k) dot += x[first + k * lines.inner] * grad[first + k * lines.inner];
      const float share = dot / (norm[line] * norm[line]);
      for (int64_t k = 0; k < lines.along; ++k) {
        const int64_t at = first + k * lines.inner;
        x_grad[at] = (grad[at] - x[at] * share) / norm[line];
      }
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput norm_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  int64_t axis_ = -1;
};

/// What a norm is taken along: an axis, or all values.
class NormAxis {
 public:
  static NormAxis Of(const OpView& op) {
    NormAxis axis;
    axis.axis_ = op.Int("axis");
    axis.all_ = op.Bool("asvector");
    axis.keep_ = op.Bool("keepdim");
    return axis;
  }
  AxisLines Lines(const Dims& x) const { return all_ ? AxisLines::Of(Dims{x.numel()}, 0) : AxisLines::Of(x, axis_); }
  Dims Reduced(const Dims& x) const {
    if (!all_) return ReducedDims(x, axis_, keep_);
    Dims one{1};
    while (keep_ && one.rank() < x.rank()) one.push_back(1);
    return one;
  }
  bool is_all() const { return all_; }

 private:
  int64_t axis_ = -1;
  bool all_ = false;
  bool keep_ = false;
};

Status InferPNorm(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  const NormAxis axis = NormAxis::Of(context.op());
  if (!axis.is_all()) MR_TRY(FrontAxis(context, context.op().Int("axis"), x.dims.rank()).status());
  const float order = context.op().Float("porder");
  if (!std::isfinite(order) || order < 1) {
    return context.Error("porder is " + ShortestNumber(order) + "; supported are 1 and above, without infinity");
  }
  x.dims = axis.Reduced(x.dims);
  context.SetOutput("Out", x);
  return Status::Ok();
}

class PNormKernel : public BoundKernel<PNormKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    axis_ = NormAxis::Of(context.op());
    order_ = context.op().Float("porder");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const AxisLines lines = axis_.Lines(x_.dims());
    const auto order = static_cast<double>(order_);
    const float* x = x_.Read();
    float* out = out_->Resize<float>(axis_.Reduced(x_.dims()));
    lines.ForEach([&](int64_t line, int64_t first) {
      if (order_ == 2 && lines.inner == 1) {
        out[line] = static_cast<float>(std::sqrt(LaneSums().squares(x + first, lines.along, 0)));
        return;
      }
      double sum = 0;
      for (int64_t k = 0; k < lines.along; ++k) {
        sum += std::pow(std::abs(static_cast<double>(x[first + k * lines.inner])), order);
      }
      out[line] = static_cast<float>(std::pow(sum, 1 / order));
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  NormAxis axis_;
  float order_ = 2;
};

class PNormGradKernel : public BoundKernel<PNormGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, GradInput::Bind(context, "Out"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    axis_ = NormAxis::Of(context.op());
    order_ = context.op().Float("porder");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const AxisLines lines = axis_.Lines(x_.dims());
    const float* x = x_.Read();
    MR_ASSIGN(const float* out, out_.Read(lines.count()));
    MR_ASSIGN(const float* grad, out_grad_.Read(lines.count()));
    float* x_grad = ResizeLike(x_.tensor(), x_grad_);
    lines.ForEach([&](int64_t line, int64_t first) {
      for (int64_t k = 0; k < lines.along; ++k) {
        const int64_t at = first + k * lines.inner;
        const float sign = SignOrNan(x[at]);
        // A norm of 0 has no slope; 0 is what Paddle gives.
        const float slope = out[line] == 0 ? 0 : std::pow(std::abs(x[at]) / out[line], order_ - 1);
        x_grad[at] = grad[line] * sign * slope;
      }
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput out_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  NormAxis axis_;
  float order_ = 2;
};

}  // namespace

void RegisterNorm(OpRegistry& registry) {
  registry.Add("norm")
      .Doc("X over its norm along an axis: l2_normalize.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Output("Norm", "the norms; the axis has size 1")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .Attr("epsilon", 1e-10F, "added to the sum of squares")
      .Attr("is_test", false, "as Paddle writes it; changes nothing here")
      .InferShape(InferNorm)
      .Grad({.inputs = {"X"}, .outputs = {"Norm"}})
      .Kernel<NormKernel>();
  registry.AddGradient("norm").Kernel<NormGradKernel>();
  registry.Add("p_norm")
      .Doc("The root of the sum of powers of |X| along an axis, or of all values.")
      .Input("X", "any shape")
      .Output("Out", "without the axis")
      .Attr("porder", 2.0F, "power of the values that are added up")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .Attr("epsilon", 1e-12F, "as Paddle writes it; changes nothing here")
      .Attr("keepdim", false, "the axis stays, of size 1")
      .Attr("asvector", false, "over all values, whatever axis says")
      .InferShape(InferPNorm)
      .Grad({.inputs = {"X"}, .outputs = {"Out"}})
      .Kernel<PNormKernel>();
  registry.AddGradient("p_norm").Kernel<PNormGradKernel>();
}

}  // namespace millrace
