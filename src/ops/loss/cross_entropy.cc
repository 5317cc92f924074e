#include <algorithm>
#include <cmath>

#include "ops/grad_input.h"
#include "ops/loss/class_labels.h"
#include "ops/x_shape.h"

namespace millrace {
namespace {

/// -log(p); an impossible probability costs 1e20, as in Paddle.
float NegativeLog(float p) {
  const float value = -std::log(p);
  if (std::isinf(value)) return value > 0 ? 1e20F : -1e20F;
  return value;
}

Status InferCrossEntropy(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  const bool is_second = context.op().type() == "cross_entropy2";
  MR_TRY(CheckLabel(context, "X", x, !is_second && context.op().Bool("soft_label"), -1));
  VarMeta out = x;
  out.dims.set(-1, 1);
  context.SetOutput("Y", out);
  context.SetOutput("MatchX", out);
  VarMeta shape = x;
  shape.dims = XShapeOf(x.dims);
  context.SetOutput("XShape", shape);
  return Status::Ok();
}

/// cross_entropy and cross_entropy2; the second keeps the probability of each label for its gradient.
class CrossEntropyKernel : public BoundKernel<CrossEntropyKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(y_, context.Output("Y"));
    MR_ASSIGN(match_, context.OptionalOutput("MatchX"));
    MR_ASSIGN(x_shape_, context.OptionalOutput("XShape"));
    rule_.soft = context.op().type() == "cross_entropy" && context.op().Bool("soft_label");
    rule_.ignore_index = context.op().Int("ignore_index");
    label_name_ = context.InputName("Label");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    Dims dims = x_->dims();
    if (dims.rank() == 0) return InvalidConfig("input X has no axes");
    const int64_t classes = dims[-1];
    const int64_t rows = dims.Product(0, dims.rank() - 1);
    MR_TRY(CheckLabelCount(label_name_, *label_, rule_.soft ? rows * classes : rows));
    if (x_shape_ != nullptr) x_shape_->Resize<float>(XShapeOf(dims));
    dims.set(-1, 1);
    const float* x = x_->data<float>();
    float* y = y_->Resize<float>(dims);
    y_->set_lod(x_->lod());
    if (rule_.soft) {
      const float* label = label_->data<float>();
      for (int64_t i = 0; i < rows; ++i) {
        float sum = 0;
        for (int64_t j = i * classes; j < (i + 1) * classes; ++j) sum += NegativeLog(x[j]) * label[j];
        y[i] = sum;
      }
      return Status::Ok();
    }
    const int64_t* label = label_->data<int64_t>();
    MR_TRY(CheckClasses(context, label_name_, label, rows, classes, rule_.ignore_index));
    float* match = match_ == nullptr ? nullptr : match_->Resize<float>(dims);
    for (int64_t i = 0; i < rows; ++i) {
      const bool ignored = label[i] == rule_.ignore_index;
      const float p = ignored ? 1 : x[i * classes + label[i]];
      y[i] = ignored ? 0 : NegativeLog(p);
      if (match != nullptr) match[i] = p;
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* label_ = nullptr;
  Tensor* y_ = nullptr;
  Tensor* match_ = nullptr;
  Tensor* x_shape_ = nullptr;
  LabelRule rule_;
  std::string label_name_;
};

class CrossEntropyGradKernel : public BoundKernel<CrossEntropyGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(y_grad_, GradInput::Bind(context, "Y@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    rule_ = LabelRule::Of(context.op());
    label_name_ = context.InputName("Label");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    if (x_->dims().rank() == 0) return InvalidConfig("input X has no axes");
    const int64_t classes = x_->dims()[-1];
    const int64_t rows = x_->numel() / std::max<int64_t>(classes, 1);
    const float* x = x_->data<float>();
    MR_ASSIGN(const float* grad, y_grad_.Read(rows));
    MR_TRY(CheckLabelCount(label_name_, *label_, rule_.soft ? rows * classes : rows));
    float* x_grad = ResizeLike(*x_, x_grad_);
    if (rule_.soft) {
      const float* label = label_->data<float>();
      for (int64_t j = 0; j < rows * classes; ++j) x_grad[j] = -label[j] * grad[j / classes] / x[j];
      return Status::Ok();
    }
    const int64_t* label = label_->data<int64_t>();
    MR_TRY(CheckClasses(context, label_name_, label, rows, classes, rule_.ignore_index));
    std::fill_n(x_grad, rows * classes, 0.0F);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = i * classes + label[i];
      if (label[i] != rule_.ignore_index) x_grad[at] = -grad[i] / x[at];
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* label_ = nullptr;
  GradInput y_grad_;
  Tensor* x_grad_ = nullptr;
  LabelRule rule_;
  std::string label_name_;
};

class CrossEntropy2GradKernel : public BoundKernel<CrossEntropy2GradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(match_, GradInput::Bind(context, "MatchX"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(x_shape_, context.Input("XShape"));
    MR_ASSIGN(y_grad_, GradInput::Bind(context, "Y@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    ignore_index_ = context.op().Int("ignore_index");
    label_name_ = context.InputName("Label");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    const Dims dims = XOfXShape(x_shape_->dims());
    if (dims.rank() == 0) return InvalidConfig("input XShape says that X has no axes");
    const int64_t classes = dims[-1];
    const int64_t rows = dims.Product(0, dims.rank() - 1);
    MR_ASSIGN(const float* match, match_.Read(rows));
    MR_ASSIGN(const float* grad, y_grad_.Read(rows));
    MR_TRY(CheckLabelCount(label_name_, *label_, rows));
    const int64_t* label = label_->data<int64_t>();
    MR_TRY(CheckClasses(context, label_name_, label, rows, classes, ignore_index_));
    float* x_grad = x_grad_->Resize<float>(dims);
    x_grad_->set_lod(y_grad_.tensor().lod());
    std::fill_n(x_grad, rows * classes, 0.0F);
    for (int64_t i = 0; i < rows; ++i) {
      if (label[i] != ignore_index_) x_grad[i * classes + label[i]] = -grad[i] / match[i];
    }
    return Status::Ok();
  }

 private:
  GradInput match_;
  const Tensor* label_ = nullptr;
  const Tensor* x_shape_ = nullptr;
  GradInput y_grad_;
  Tensor* x_grad_ = nullptr;
  int64_t ignore_index_ = -100;
  std::string label_name_;
};

std::vector<OpDesc> CrossEntropy2Grad(const GradContext& context) {
  if (!context.Has("Y") || !context.Wants("X")) return {};
  OpDesc grad = context.GradOp({"Label"}, {"MatchX", "XShape"}, {"Y"}, {"X"});
  grad.set_type("cross_entropy_grad2");  // the one gradient that Paddle names otherwise
  return {grad};
}

}  // namespace

void RegisterCrossEntropy(OpRegistry& registry) {
  const std::string ignored = "rows with this label cost nothing";
  const std::string soft = "Label holds probabilities of the shape of X";
  registry.Add("cross_entropy")
      .Doc("Y = -log(X[label]), or -sum(Label * log(X)) with soft labels.")
      .Input("X", "probabilities [..., classes]")
      .Input("Label", "int64 [..., 1], or soft")
      .Output("Y", "[..., 1]")
      .Attr("soft_label", false, soft)
      .Attr("ignore_index", int64_t{-100}, ignored)
      .InferShape(InferCrossEntropy)
      .Grad({.inputs = {"X", "Label"}, .of = {"Y"}})
      .Kernel<CrossEntropyKernel>();
  registry.AddGradient("cross_entropy").Kernel<CrossEntropyGradKernel>();
  registry.Add("cross_entropy2")
      .Doc("Y = -log(X[label]); keeps X[label] for the gradient.")
      .Input("X", "probabilities [..., classes]")
      .Input("Label", "int64 [..., 1]")
      .Output("Y", "[..., 1]")
      .OptionalOutput("MatchX", "X[label], [..., 1]")
      .OptionalOutput("XShape", "no values; its shape is 0, then X's")
      .Attr("ignore_index", int64_t{-100}, ignored)
      .InferShape(InferCrossEntropy)
      .Grad(CrossEntropy2Grad)
      .Kernel<CrossEntropyKernel>();
  registry.Add("cross_entropy_grad2")
      .Doc("Gradient of cross_entropy2.")
      .Input("MatchX", "of the forward operator")
      .Input("Label", "of the forward operator")
      .Input("XShape", "of the forward operator")
      .Input("Y@GRAD", "gradient of Y")
      .Output("X@GRAD", "gradient of X")
      .Attr("ignore_index", int64_t{-100}, ignored)
      .InferShape(InferFromXShape)
      .Gradient()
      .Kernel<CrossEntropy2GradKernel>();
}

}  // namespace millrace
