#include <algorithm>
#include <cmath>

#include "ops/grad_input.h"
#include "ops/loss/class_labels.h"
#include "program/expansion.h"

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

Status ExpandRank(Expansion& e) {
  MR_TRY(ExpectFloats(e, {"Label", "Left", "Right"}));
  e.ExpectEqualShapes({"Left", "Label", "Right"});
  const auto lead = e.Add("elementwise_sub", {{"X", e.In("Left")}, {"Y", e.In("Right")}});
  const auto curve = e.Add("softplus", {{"X", lead}});
  const auto line = e.Add("elementwise_mul", {{"X", e.In("Label")}, {"Y", lead}});
  e.SetOut("Out", e.Add("elementwise_sub", {{"X", curve}, {"Y", line}}));
  return Status::Ok();
}

Status ExpandRankGrad(Expansion& e) {
  e.ExpectEqualShapes({"Left", "Label", "Right", "Out@GRAD"});
  const auto lead = e.Add("elementwise_sub", {{"X", e.In("Left")}, {"Y", e.In("Right")}});
  const auto likelihood = e.Add("sigmoid", {{"X", lead}});
  const auto slope = e.Add("elementwise_sub", {{"X", likelihood}, {"Y", e.In("Label")}});
  const auto left_grad = e.Add("elementwise_mul", {{"X", slope}, {"Y", e.In("Out@GRAD")}});
  e.SetOut("Left@GRAD", left_grad);
  e.SetOut("Right@GRAD", e.Add("scale", {{"X", left_grad}}, {{"scale", -1.0F}}));
  return Status::Ok();
}

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
      .Grad({.inputs = {"Label", "Left", "Right"}, .to = {"Left", "Right"}})
      .Expand(ExpandRank);
  registry.AddGradient("rank_loss").Expand(ExpandRankGrad);
}

}  // namespace millrace
