#include <algorithm>
#include <cmath>

#include "ops/class_labels.h"
#include "ops/grad_input.h"
#include "ops/softmax_row.h"

namespace millrace {
namespace {

Status InferLoss(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta logits, context.Input("Logits"));
  MR_TRY(ExpectDType(context, "Logits", logits, DType::kFloat32));
  MR_ASSIGN(const int axis, FrontAxis(context, context.op().Int("axis"), logits.dims.rank()));
  if (axis != logits.dims.rank() - 1) return context.Error("only the last axis is supported");
  MR_TRY(CheckLabel(context, "Logits", logits, context.op().Bool("soft_label")));
  context.SetOutput("Softmax", logits);
  VarMeta loss = logits;
  loss.dims.set(-1, 1);
  context.SetOutput("Loss", loss);
  return Status::Ok();
}

Status InferLossGrad(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta softmax, context.Input("Softmax"));
  context.SetOutput("Logits@GRAD", softmax);
  return Status::Ok();
}

class LossKernel : public BoundKernel<LossKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(logits_, context.Input("Logits"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(softmax_, context.Output("Softmax"));
    MR_ASSIGN(loss_, context.Output("Loss"));
    rule_ = LabelRule::Of(context.op());
    use_softmax_ = context.op().Bool("use_softmax");
    label_name_ = context.InputName("Label");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    Dims dims = logits_->dims();
    const int64_t classes = dims[-1];
    const int64_t rows = dims.Product(0, dims.rank() - 1);
    MR_TRY(CheckLabelCount(label_name_, *label_, rule_.soft ? rows * classes : rows));
    if (!rule_.soft) {
      const int64_t* label = label_->data<int64_t>();
      MR_TRY(CheckClasses(context, label_name_, label, rows, classes, rule_.ignore_index));
    }
    const float* logits = logits_->data<float>();
    float* softmax = ResizeLike(*logits_, softmax_);
    dims.set(-1, 1);
    float* loss = loss_->Resize<float>(dims);
    loss_->set_lod(softmax_->lod());
    for (int64_t i = 0; i < rows; ++i) {
      const float* row = logits + i * classes;
      if (use_softmax_) {
        loss[i] = Row(row, classes, i, softmax + i * classes);
      } else {
        std::copy_n(row, classes, softmax + i * classes);
        loss[i] = RowOfProbabilities(row, classes, i);
      }
    }
    return Status::Ok();
  }

 private:
  /// Softmax of a row, and its loss from the logits: exact where a probability underflows.
  float Row(const float* x, int64_t classes, int64_t i, float* softmax) const {
    const float most = *std::max_element(x, x + classes);
    float sum = 0;
    for (int64_t j = 0; j < classes; ++j) sum += std::exp(x[j] - most);
    const float log_sum = std::log(sum);
    float loss = 0;
    if (rule_.soft) {
      const float* label = label_->data<float>() + i * classes;
      for (int64_t j = 0; j < classes; ++j) loss += label[j] * (log_sum - (x[j] - most));
    } else if (const int64_t label = label_->data<int64_t>()[i]; label != rule_.ignore_index) {
      loss = log_sum - (x[label] - most);
    }
    for (int64_t j = 0; j < classes; ++j) softmax[j] = std::exp(x[j] - most) / sum;
    return loss;
  }

  /// Loss of a row that holds probabilities already; those below kLeast count as that.
  float RowOfProbabilities(const float* p, int64_t classes, int64_t i) const {
    constexpr float kLeast = 1e-20f;
    if (rule_.soft) {
      const float* label = label_->data<float>() + i * classes;
      float loss = 0;
      for (int64_t j = 0; j < classes; ++j) loss -= label[j] * std::log(std::max(p[j], kLeast));
      return loss;
    }
    const int64_t label = label_->data<int64_t>()[i];
    return label == rule_.ignore_index ? 0 : -std::log(std::max(p[label], kLeast));
  }

  const Tensor* logits_ = nullptr;
  const Tensor* label_ = nullptr;
  Tensor* softmax_ = nullptr;
  Tensor* loss_ = nullptr;
  LabelRule rule_;
  bool use_softmax_ = true;
  std::string label_name_;
};

class LossGradKernel : public BoundKernel<LossGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(softmax_, context.Input("Softmax"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(loss_grad_, GradInput::Bind(context, "Loss@GRAD"));
    MR_ASSIGN(logits_grad_, context.Output("Logits@GRAD"));
    rule_ = LabelRule::Of(context.op());
    label_name_ = context.InputName("Label");
    use_softmax_ = context.op().Bool("use_softmax");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    if (softmax_->dims().rank() == 0) return InvalidConfig("input Softmax has no axes");
    const int64_t classes = softmax_->dims()[-1];
    const int64_t count = softmax_->numel();
    const float* softmax = softmax_->data<float>();
    const int64_t rows = softmax_->dims().Product(0, softmax_->dims().rank() - 1);
    MR_ASSIGN(const float* loss_grad, loss_grad_.Read(rows));
    MR_TRY(CheckLabelCount(label_name_, *label_, rule_.soft ? count : rows));
    if (!rule_.soft) {
      MR_TRY(CheckClasses(context, label_name_, label_->data<int64_t>(), rows, classes, rule_.ignore_index));
    }
    float* grad = ResizeLike(*softmax_, logits_grad_);
    for (int64_t at = 0, i = 0; at < count; at += classes, ++i) {
      const float g = loss_grad[i];
      if (!use_softmax_) {
        ProbabilityGrad(i, g, softmax + at, classes, grad + at);
        continue;
      }
      if (rule_.soft) {
        const float* label = label_->data<float>() + at;
        for (int64_t j = 0; j < classes; ++j) grad[at + j] = (softmax[at + j] - label[j]) * g;
        continue;
      }
      const int64_t label = label_->data<int64_t>()[i];
      const float factor = label == rule_.ignore_index ? 0 : g;
      for (int64_t j = 0; j < classes; ++j) grad[at + j] = softmax[at + j] * factor;
      if (label != rule_.ignore_index) grad[at + label] -= g;
    }
    return Status::Ok();
  }

 private:
  /// The gradient by probabilities: -label / p.
  void ProbabilityGrad(int64_t i, float g, const float* p, int64_t classes, float* grad) const {
    if (rule_.soft) {
      const float* label = label_->data<float>() + i * classes;
      for (int64_t j = 0; j < classes; ++j) grad[j] = -g * label[j] / p[j];
      return;
    }
    std::fill_n(grad, classes, 0.f);
    const int64_t label = label_->data<int64_t>()[i];
    if (label != rule_.ignore_index) grad[label] = -g / p[label];
  }

  const Tensor* softmax_ = nullptr;
  const Tensor* label_ = nullptr;
  GradInput loss_grad_;
  Tensor* logits_grad_ = nullptr;
  LabelRule rule_;
  std::string label_name_;
  bool use_softmax_ = true;
};

std::vector<OpDesc> LossGrad(const GradContext& context) {
  if (!context.Has("Loss") || !context.Wants("Logits")) return {};
  return {context.GradOp({"Label"}, {"Softmax"}, {"Loss"}, {"Logits"})};
}

OpBuilder AddAttrs(OpBuilder op) {
  return op.Attr("soft_label", false, "Label holds probabilities of the shape of Logits")
      .Attr("ignore_index", int64_t{-100}, "rows with this label cost nothing")
      .Attr("numeric_stable_mode", true, "always so")
      .Attr("use_softmax", true, "false: Logits holds probabilities already, and Softmax is a copy of them")
      .Attr("axis", int64_t{-1}, "the last axis");
}

}  // namespace

void RegisterSoftmaxWithCrossEntropy(OpRegistry& registry) {
  AddAttrs(registry.Add("softmax_with_cross_entropy"))
      .Doc("Softmax along the last axis, and -log of the label's.")
      .Input("Logits", "[..., classes]")
      .Input("Label", "int64 [..., 1], or soft")
      .Output("Softmax", "shape of Logits")
      .Output("Loss", "[..., 1]")
      .InferShape(InferLoss)
      .Grad(LossGrad)
      .Kernel<LossKernel>();
  AddAttrs(registry.Add("softmax_with_cross_entropy_grad"))
      .Doc("Gradient of softmax_with_cross_entropy.")
      .Input("Label", "of the forward operator")
      .Input("Softmax", "of the forward operator")
      .Input("Loss@GRAD", "gradient of Loss")
      .Output("Logits@GRAD", "gradient of Logits")
      .InferShape(InferLossGrad)
      .Gradient()
      .Kernel<LossGradKernel>();
}

}  // namespace millrace
