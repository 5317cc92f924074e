#include <algorithm>

#include "ops/axis_lines.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/loss/class_labels.h"
#include "ops/loss/loss_reduction.h"

namespace millrace {
namespace {

/// Dims without axis 1, where the classes are.
Dims WithoutClasses(const Dims& x) { return ReducedDims(x, 1, false); }

Status InferNll(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta label, context.Input("Label"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(ExpectDType(context, "Label", label, DType::kInt64));
  if (x.dims.rank() < 2 || !MayEqual(label.dims, WithoutClasses(x.dims))) {
    return context.Error("Label " + label.dims.ToString() + " must be X " + x.dims.ToString() + " without its axis 1");
  }
  if (context.HasInput("Weight")) {
    MR_ASSIGN(const VarMeta weight, context.Input("Weight"));
    MR_TRY(ExpectDType(context, "Weight", weight, DType::kFloat32));
    if (!MayEqual(weight.dims, Dims{x.dims[1]})) {
      return context.Error("Weight " + weight.dims.ToString() + " must have a value for each class of X " +
                           x.dims.ToString());
    }
  }
  const Result<LossReduction> reduction = ReadLossReduction(context.op());
  if (!reduction.ok()) return context.Error(reduction.status().message());
  if (*reduction == LossReduction::kBatchMean) return context.Error("reduction is none, mean or sum");
  const bool whole = *reduction == LossReduction::kNone;
  x.lod_level = whole ? x.lod_level : 0;
  x.dims = whole ? label.dims : Dims{1};
  context.SetOutput("Out", x);
  x.dims = Dims{1};
  x.lod_level = 0;
  context.SetOutput("Total_weight", x);
  return Status::Ok();
}

/// Forward without Out@GRAD, backward with it.
class NllKernel : public BoundKernel<NllKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(weight_, FloatInput::BindOptional(context, "Weight"));
    const bool backward = context.op().info().is_gradient;
    if (backward) {
      MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
      MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    } else {
      MR_ASSIGN(out_, context.Output("Out"));
      MR_ASSIGN(total_, context.Output("Total_weight"));
    }
    MR_ASSIGN(reduction_, ReadLossReduction(context.op()));
    ignore_index_ = context.op().Int("ignore_index");
    label_name_ = context.InputName("Label");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    const AxisLines lines = AxisLines::Of(x_->dims(), 1);
    const int64_t rows = lines.outer * lines.inner;
    MR_TRY(CheckLabelCount(label_name_, *label_, rows));
    const int64_t* label = label_->data<int64_t>();
    MR_TRY(CheckClasses(context, label_name_, label, rows, lines.along, ignore_index_));
    MR_TRY(weight_.Expect(lines.along));
    const float* weight = weight_.bound() ? weight_.Read() : nullptr;
    const auto weight_of = [&](int64_t row) { return weight == nullptr ? 1 : weight[label[row]]; };
    double total = 0;
    for (int64_t row = 0; row < rows; ++row) {
      if (label[row] != ignore_index_) total += static_cast<double>(weight_of(row));
    }
    const bool whole = reduction_ == LossReduction::kNone;
    // Of rows that all have the ignored label the mean is 0.
    const double parts = reduction_ == LossReduction::kMean && total != 0 ? total : 1;
    if (out_grad_.bound()) {
      MR_ASSIGN(const float* grad, out_grad_.Read(whole ? rows : 1));
      float* x_grad = ResizeLike(*x_, x_grad_);
      std::fill_n(x_grad, x_->numel(), 0.0F);
      lines.ForEach([&](int64_t row, int64_t first) {
        if (label[row] == ignore_index_) return;
        x_grad[first + label[row] * lines.inner] = -grad[whole ? row : 0] * weight_of(row) / static_cast<float>(parts);
      });
      return Status::Ok();
    }
    const float* x = x_->data<float>();
    float* out = whole ? out_->Resize<float>(label_->dims()) : nullptr;
    double sum = 0;
    lines.ForEach([&](int64_t row, int64_t first) {
      const bool ignored = label[row] == ignore_index_;
      const float cost = ignored ? 0 : -x[first + label[row] * lines.inner] * weight_of(row);
      if (whole) out[row] = cost;
      sum += static_cast<double>(cost);
    });
    if (!whole) *out_->Resize<float>({1}) = static_cast<float>(sum / parts);
    // Paddle leaves it at 0 when it reduces nothing.
    *total_->Resize<float>({1}) = whole ? 0 : static_cast<float>(total);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* label_ = nullptr;
  FloatInput weight_;
  GradInput out_grad_;
  Tensor* out_ = nullptr;
  Tensor* total_ = nullptr;
  Tensor* x_grad_ = nullptr;
  LossReduction reduction_ = LossReduction::kMean;
  int64_t ignore_index_ = -100;
  std::string label_name_;
};

}  // namespace

void RegisterNllLoss(OpRegistry& registry) {
  registry.Add("nll_loss")
      .Apart()
      .Doc("Out = -X[label] * Weight[label].")
      .Input("X", "logarithms of probabilities, [rows, classes, ...]")
      .Input("Label", "int64 [rows, ...]")
      .OptionalInput("Weight", "[classes]; 1 without it")
      .Output("Out", "shape of Label, or [1]")
      .Output("Total_weight", "the weights of all labels that count, [1]")
      .Attr("ignore_index", int64_t{-100}, "rows with this label cost nothing")
      .Attr("reduction", std::string("mean"), "none, sum, or mean: the sum over the weights")
      .InferShape(InferNll)
      .Grad({.inputs = {"X", "Label", "Weight"}, .outputs = {"Total_weight"}, .unread = {"Total_weight"}})
      .Kernel<NllKernel>();
  registry.AddGradient("nll_loss").Kernel<NllKernel>();
}

}  // namespace millrace
