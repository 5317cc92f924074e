#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/softmax_row.h"
#include "ops/axis_lines.h"
#include "ops/grad_input.h"
#include "ops/loss/class_labels.h"

namespace millrace {
namespace {

Status InferSoftmaxLoss(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta logits, context.Input("Logits"));
  MR_TRY(ExpectDType(context, "Logits", logits, DType::kFloat32));
  MR_ASSIGN(const int axis, FrontAxis(context, context.op().Int("axis"), logits.dims.rank()));
  MR_TRY(CheckLabel(context, "Logits", logits, context.op().Bool("soft_label"), axis));
  context.SetOutput("Softmax", logits);
  VarMeta loss = logits;
  loss.dims.set(axis, 1);
  context.SetOutput("Loss", loss);
  return Status::Ok();
}

Status InferLossGrad(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta softmax, context.Input("Softmax"));
  context.SetOutput("Logits@GRAD", softmax);
  return Status::Ok();
}

/// The values of one line of a tensor, in a row: in place where they lie so, otherwise copied to `row` and back.
class LineRow {
 public:
  explicit LineRow(const AxisLines& lines) : lines_(lines) {}

  const float* Take(const float* values, int64_t first) {
    if (lines_.inner == 1) return values + first;
    row_.resize(static_cast<size_t>(lines_.along));
    for (int64_t k = 0; k < lines_.along; ++k) row_[static_cast<size_t>(k)] = values[first + k * lines_.inner];
    return row_.data();
  }
  float* Room(float* values, int64_t first) {
    row_.resize(static_cast<size_t>(lines_.along));
    return lines_.inner == 1 ? values + first : row_.data();
  }
  void Put(float* values, int64_t first) const {
    if (lines_.inner == 1) return;
    for (int64_t k = 0; k < lines_.along; ++k) values[first + k * lines_.inner] = row_[static_cast<size_t>(k)];
  }
  void Follow(const AxisLines& lines) { lines_ = lines; }

 private:
  AxisLines lines_;
  std::vector<float> row_;
};

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
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    Dims dims = logits_->dims();
    const AxisLines lines = AxisLines::Of(dims, axis_);
    const int64_t classes = lines.along;
    if (classes == 0) return BadData("Logits " + dims.ToString() + " have no classes");
    const int64_t rows = lines.outer * lines.inner;
    MR_TRY(CheckLabelCount(label_name_, *label_, rule_.soft ? rows * classes : rows));
    const float* shares = rule_.soft ? label_->data<float>() : nullptr;
    const int64_t* label = rule_.soft ? nullptr : label_->data<int64_t>();
    if (!rule_.soft) MR_TRY(CheckClasses(context, label_name_, label, rows, classes, rule_.ignore_index));
    const float* logits = logits_->data<float>();
    float* softmax = ResizeLike(*logits_, softmax_);
    dims.set(static_cast<int>(axis_), 1);
    float* loss = loss_->Resize<float>(dims);
    loss_->set_lod(softmax_->lod());
    for (LineRow* row : {&x_row_, &label_row_, &softmax_row_}) row->Follow(lines);
    lines.ForEach([&](int64_t line, int64_t first) {
      const float* x = x_row_.Take(logits, first);
      float* out = softmax_row_.Room(softmax, first);
      const float* soft = rule_.soft ? label_row_.Take(shares, first) : nullptr;
      const int64_t hard = rule_.soft ? 0 : label[line];
      if (use_softmax_) {
        loss[line] = Row(x, classes, soft, hard, out);
      } else {
        if (out != x) std::copy_n(x, classes, out);
        loss[line] = RowOfProbabilities(x, classes, soft, hard);
      }
      softmax_row_.Put(softmax, first);
    });
    return Status::Ok();
  }

 private:
  /// Softmax of a row, and its loss from the logits: exact where a probability underflows.
  float Row(const float* x, int64_t classes, const float* soft, int64_t hard, float* softmax) const {
    const float most = *std::max_element(x, x + classes);
    float sum = 0;
    for (int64_t j = 0; j < classes; ++j) sum += std::exp(x[j] - most);
    const float log_sum = std::log(sum);
    float loss = 0;
    if (rule_.soft) {
      for (int64_t j = 0; j < classes; ++j) loss += soft[j] * (log_sum - (x[j] - most));
    } else if (hard != rule_.ignore_index) {
      loss = log_sum - (x[hard] - most);
    }
    for (int64_t j = 0; j < classes; ++j) softmax[j] = std::exp(x[j] - most) / sum;
    return loss;
  }

  /// Loss of a row that holds probabilities already; those below kLeast count as that.
  float RowOfProbabilities(const float* p, int64_t classes, const float* soft, int64_t hard) const {
    constexpr float kLeast = 1e-20f;
    if (rule_.soft) {
      float loss = 0;
      for (int64_t j = 0; j < classes; ++j) loss -= soft[j] * std::log(std::max(p[j], kLeast));
      return loss;
    }
    return hard == rule_.ignore_index ? 0 : -std::log(std::max(p[hard], kLeast));
  }

  const Tensor* logits_ = nullptr;
  const Tensor* label_ = nullptr;
  Tensor* softmax_ = nullptr;
  Tensor* loss_ = nullptr;
  LabelRule rule_;
  bool use_softmax_ = true;
  int64_t axis_ = -1;
  std::string label_name_;
  LineRow x_row_{AxisLines{}};
  LineRow label_row_{AxisLines{}};
  LineRow softmax_row_{AxisLines{}};
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
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    const int rank = softmax_->dims().rank();
    if (axis_ >= rank || axis_ < -rank) return InvalidConfig("input Softmax has no axis " + std::to_string(axis_));
    const AxisLines lines = AxisLines::Of(softmax_->dims(), axis_);
    const int64_t classes = lines.along;
    const int64_t rows = lines.outer * lines.inner;
    const float* softmax = softmax_->data<float>();
    MR_ASSIGN(const float* loss_grad, loss_grad_.Read(rows));
    MR_TRY(CheckLabelCount(label_name_, *label_, rule_.soft ? softmax_->numel() : rows));
    const float* shares = rule_.soft ? label_->data<float>() : nullptr;
    const int64_t* label = rule_.soft ? nullptr : label_->data<int64_t>();
    if (!rule_.soft) MR_TRY(CheckClasses(context, label_name_, label, rows, classes, rule_.ignore_index));
    float* grad = ResizeLike(*softmax_, logits_grad_);
    for (LineRow* row : {&softmax_row_, &label_row_, &grad_row_}) row->Follow(lines);
    lines.ForEach([&](int64_t line, int64_t first) {
      const float* p = softmax_row_.Take(softmax, first);
      const float* soft = rule_.soft ? label_row_.Take(shares, first) : nullptr;
      const int64_t hard = rule_.soft ? 0 : label[line];
      float* row = grad_row_.Room(grad, first);
      if (use_softmax_) {
        LogitsGrad(loss_grad[line], p, classes, soft, hard, row);
      } else {
        ProbabilityGrad(loss_grad[line], p, classes, soft, hard, row);
      }
      grad_row_.Put(grad, first);
    });
    return Status::Ok();
  }

 private:
  void LogitsGrad(float g, const float* p, int64_t classes, const float* soft, int64_t hard, float* grad) const {
    if (rule_.soft) {
      for (int64_t j = 0; j < classes; ++j) grad[j] = (p[j] - soft[j]) * g;
      return;
    }
    const float factor = hard == rule_.ignore_index ? 0 : g;
    for (int64_t j = 0; j < classes; ++j) grad[j] = p[j] * factor;
    if (hard != rule_.ignore_index) grad[hard] -= g;
  }

  /// The gradient by probabilities: -label / p.
  void ProbabilityGrad(float g, const float* p, int64_t classes, const float* soft, int64_t hard, float* grad) const {
    if (rule_.soft) {
      for (int64_t j = 0; j < classes; ++j) grad[j] = -g * soft[j] / p[j];
      return;
    }
    const float slope = hard == rule_.ignore_index ? 0 : -g / p[hard];  // `grad` may be `p`
    std::fill_n(grad, classes, 0.f);
    if (hard != rule_.ignore_index) grad[hard] = slope;
  }

  const Tensor* softmax_ = nullptr;
  const Tensor* label_ = nullptr;
  GradInput loss_grad_;
  Tensor* logits_grad_ = nullptr;
  LabelRule rule_;
  std::string label_name_;
  bool use_softmax_ = true;
  int64_t axis_ = -1;
  LineRow softmax_row_{AxisLines{}};
  LineRow label_row_{AxisLines{}};
  LineRow grad_row_{AxisLines{}};
};

}  // namespace

void RegisterSoftmaxWithCrossEntropy(OpRegistry& registry) {
  registry.Add("softmax_with_cross_entropy")
      .Doc("Softmax along an axis, and -log of the label's.")
      .Input("Logits", "[..., classes]")
      .Input("Label", "int64 [..., 1], one for each line along the axis, or soft")
      .Output("Softmax", "shape of Logits")
      .Output("Loss", "[..., 1], the axis of size 1")
      .Attr("soft_label", false, "Label holds probabilities of the shape of Logits")
      .Attr("ignore_index", int64_t{-100}, "rows with this label cost nothing")
      .Attr("numeric_stable_mode", true, "always so")
      .Attr("use_softmax", true, "false: Logits holds probabilities already, and Softmax is a copy of them")
      .Attr("axis", int64_t{-1}, "the axis of the classes")
      .InferShape(InferSoftmaxLoss)
      .Grad({.inputs = {"Label"}, .outputs = {"Softmax"}, .of = {"Loss"}, .to = {"Logits"}})
      .Kernel<LossKernel>();
  registry.AddGradient("softmax_with_cross_entropy").InferShape(InferLossGrad).Kernel<LossGradKernel>();
}

}  // namespace millrace
