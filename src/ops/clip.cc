#include <algorithm>

#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/sparse_gradient.h"

namespace millrace {
namespace {

Status InferClip(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  const float min = context.op().Float("min");
  const float max = context.op().Float("max");
  if (min > max) return context.Error("min " + std::to_string(min) + " is above max " + std::to_string(max));
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// Forward without Out@GRAD, backward with it.
class ClipKernel : public BoundKernel<ClipKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    const bool backward = context.op().info().is_gradient;
    if (backward) {
      MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    }
    MR_ASSIGN(target_, context.Output(backward ? "X@GRAD" : "Out"));
    min_ = context.op().Float("min");
    max_ = context.op().Float("max");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const int64_t count = x_.tensor().numel();
    if (!out_grad_.bound()) {
      float* to = ResizeLike(x_.tensor(), target_);
      for (int64_t i = 0; i < count; ++i) to[i] = std::min(std::max(x[i], min_), max_);
      return Status::Ok();
    }
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* to = ResizeLike(x_.tensor(), target_);
    for (int64_t i = 0; i < count; ++i) to[i] = x[i] > min_ && x[i] < max_ ? grad[i] : 0;
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput out_grad_;
  Tensor* target_ = nullptr;
  float min_ = 0;
  float max_ = 0;
};

/// A sparse gradient: equal rows are added up first.
class ClipRowsKernel : public OpKernel {
 public:
  ClipRowsKernel(const OpView& op, const SelectedRows* x, SelectedRows* out)
      : x_(x), out_(out), min_(op.Float("min")), max_(op.Float("max")) {}
  Status Run(const RunContext&) override {
    CopyRows(
        merger_.Merge(*x_), [this](float value) { return std::min(std::max(value, min_), max_); }, out_);
    return Status::Ok();
  }

 private:
  const SelectedRows* x_;
  SelectedRows* out_;
  float min_;
  float max_;
  RowMerger merger_;
};

/// Picks the kernel by what X holds.
struct ClipFactory {
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    MR_ASSIGN(const SelectedRows* rows, RowsInput(context, "X"));
    if (rows == nullptr) return ClipKernel::Create(context);
    MR_ASSIGN(SelectedRows * out, RowsOutput(context, "Out"));
    return std::unique_ptr<OpKernel>(std::make_unique<ClipRowsKernel>(context.op(), rows, out));
  }
};

}  // namespace

void RegisterClip(OpRegistry& registry) {
  registry.Add("clip")
      .Doc("Out = X, but not below min nor above max.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("min", 0.0F, "lower bound")
      .Attr("max", 0.0F, "upper bound")
      .InferShape(InferClip)
      .Grad(GradFromX)
      .Kernel<ClipFactory>();
  registry.Add("clip_grad")
      .Doc("Gradient of clip.")
      .Input("X", "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Output("X@GRAD", "gradient of X")
      .Attr("min", 0.0F, "lower bound")
      .Attr("max", 0.0F, "upper bound")
      .InferShape(InferGradients)
      .Gradient()
      .Kernel<ClipKernel>();
}

}  // namespace millrace
