#include <algorithm>
#include <cmath>

#include "ops/grad_input.h"
#include "ops/loss/class_labels.h"

namespace millrace {
namespace {

float Likelihood(float x) { return 1 / (1 + std::exp(-x)); }
/// log(1 + exp(x)) without overflow.
float LogOnePlusExp(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x))); }

Status InferBpr(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(CheckLabel(context, "X", x, false, -1));
  if (x.dims.rank() != 2 || (x.dims[1] >= 0 && x.dims[1] < 2)) {
    return context.Error("X " + x.dims.ToString() + " must be a matrix of at least two columns");
  }
  x.dims.set(-1, 1);
  context.SetOutput("Y", x);
  return Status::Ok();
}

/// Forward without Y@GRAD, backward with it.
class BprKernel : public BoundKernel<BprKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(y_grad_, GradInput::BindOptional(context, "Y@GRAD"));
    MR_ASSIGN(target_, context.Output(y_grad_.bound() ? "X@GRAD" : "Y"));
    name_ = context.InputName("Label");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    const int64_t rows = x_->dims()[0];
    const int64_t classes = x_->dims()[1];
    MR_TRY(CheckLabelCount(name_, *label_, rows));
    const int64_t* label = label_->data<int64_t>();
    MR_TRY(CheckClasses(context, name_, label, rows, classes, std::nullopt));
    const float share = 1 / static_cast<float>(classes - 1);
    const float* x = x_->data<float>();
    if (!y_grad_.bound()) {
      float* y = target_->Resize<float>({rows, 1});
      for (int64_t i = 0; i < rows; ++i, x += classes) {
        float sum = 0;
        for (int64_t j = 0; j < classes; ++j) sum += j == label[i] ? 0 : LogOnePlusExp(x[j] - x[label[i]]);
        y[i] = sum * share;
      }
      return Status::Ok();
    }
    MR_ASSIGN(const float* grad, y_grad_.Read(rows));
    float* x_grad = ResizeLike(*x_, target_);
    for (int64_t i = 0; i < rows; ++i, x += classes, x_grad += classes) {
      float sum = 0;
      for (int64_t j = 0; j < classes; ++j) {
        x_grad[j] = j == label[i] ? 0 : grad[i] * share * Likelihood(x[j] - x[label[i]]);
        sum += x_grad[j];
      }
      x_grad[label[i]] = -sum;
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* label_ = nullptr;
  GradInput y_grad_;
  Tensor* target_ = nullptr;
  std::string name_;
};

Status InferRank(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta left, context.Input("Left"));
  for (const char* name : {"Label", "Left", "Right"}) {
    MR_ASSIGN(const VarMeta meta, context.Input(name));
    MR_TRY(ExpectDType(context, name, meta, DType::kFloat32));
    if (MayEqual(meta.dims, left.dims)) continue;
    return context.Error("shapes differ: Left " + left.dims.ToString() + ", " + name + " " + meta.dims.ToString());
  }
  context.SetOutput("Out", left);
  return Status::Ok();
}

class RankKernel : public BoundKernel<RankKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(left_, context.Input("Left"));
    MR_ASSIGN(right_, context.Input("Right"));
    MR_ASSIGN(out_grad_, GradInput::BindOptional(context, "Out@GRAD"));
    if (!out_grad_.bound()) {
      MR_ASSIGN(out_, context.Output("Out"));
      return Status::Ok();
    }
    MR_ASSIGN(left_grad_, context.OptionalOutput("Left@GRAD"));
    MR_ASSIGN(right_grad_, context.OptionalOutput("Right@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t count = left_->numel();
    if (right_->numel() != count || label_->numel() != count) {
      return BadData("shapes differ: Label " + label_->dims().ToString() + ", Left " + left_->dims().ToString() +
                     ", Right " + right_->dims().ToString());
    }
    const float* label = label_->data<float>();
    const float* left = left_->data<float>();
    const float* right = right_->data<float>();
    if (!out_grad_.bound()) {
      float* out = ResizeLike(*left_, out_);
      for (int64_t i = 0; i < count; ++i) {
        out[i] = LogOnePlusExp(left[i] - right[i]) - label[i] * (left[i] - right[i]);
      }
      return Status::Ok();
    }
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* left_grad = left_grad_ == nullptr ? nullptr : ResizeLike(*left_, left_grad_);
    float* right_grad = right_grad_ == nullptr ? nullptr : ResizeLike(*right_, right_grad_);
    for (int64_t i = 0; i < count; ++i) {
      const float slope = grad[i] * (Likelihood(left[i] - right[i]) - label[i]);
      if (left_grad != nullptr) left_grad[i] = slope;
      if (right_grad != nullptr) right_grad[i] = -slope;
    }
    return Status::Ok();
  }

 private:
  const Tensor* label_ = nullptr;
  const Tensor* left_ = nullptr;
  const Tensor* right_ = nullptr;
  GradInput out_grad_;
  Tensor* out_ = nullptr;
  Tensor* left_grad_ = nullptr;
  Tensor* right_grad_ = nullptr;
};

}  // namespace

void RegisterRankingLoss(OpRegistry& registry) {
  registry.Add("bpr_loss")
      .Doc("The mean over the other classes of log(1 + exp(X[class] - X[label])).")
      .Input("X", "scores [rows, classes]")
      .Input("Label", "int64 [rows, 1]")
      .Output("Y", "[rows, 1]")
      .InferShape(InferBpr)
      .Grad({.inputs = {"X", "Label"}, .of = {"Y"}})
      .Kernel<BprKernel>();
  registry.AddGradient("bpr_loss").Kernel<BprKernel>();
  registry.Add("rank_loss")
      .Doc("log(1 + exp(Left - Right)) - Label * (Left - Right).")
      .Input("Label", "1 where Left should be above Right, else 0")
      .Input("Left", "scores, any shape")
      .Input("Right", "scores of the same shape")
      .Output("Out", "of the same shape")
      .InferShape(InferRank)
      .Grad({.inputs = {"Label", "Left", "Right"}, .to = {"Left", "Right"}})
      .Kernel<RankKernel>();
  registry.AddGradient("rank_loss").Kernel<RankKernel>();
}

}  // namespace millrace
