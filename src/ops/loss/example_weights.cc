#include <cmath>
#include <optional>

#include "batch/class_weight.h"
#include "batch/label_range_monitor.h"
#include "core/numbers.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

constexpr const char* kInputs[] = {"Label", "Weight", "Mask", "Thinned"};

Status InferExampleWeights(InferShapeContext& context) {
  VarMeta out;
  bool any = false;
  for (const char* input : kInputs) {
    if (!context.HasInput(input)) continue;
    MR_ASSIGN(const VarMeta meta, context.Input(input));
    const std::string shown = std::string(input) + " " + meta.dims.ToString();
    if (meta.dtype != DType::kFloat32 && meta.dtype != DType::kInt64) {
      return context.Error(shown + " must be float32 or int64");
    }
    if (meta.dims.rank() != 2 || !MayEqual(meta.dims[1], 1)) {
      return context.Error(shown + " must have one value a row: [rows, 1]");
    }
    if (std::string_view(input) == "Label") context.SetOutput("LabelOut", meta);
    out.dims = meta.dims;
    any = true;
  }
  if (!any) return context.Error("it has no input: Label, Weight, Mask or Thinned");
  if (context.HasOutput("LabelOut") && !context.HasInput("Label")) return context.Error("LabelOut needs a Label");
  for (const float weight : context.op().Floats("class_weight")) {
    if (!(weight >= 0 && std::isfinite(weight))) return context.Error("class_weight must not be negative or infinite");
  }
  if (!context.op().Floats("class_weight").empty() && !context.HasInput("Label")) {
    return context.Error("class_weight needs a Label");
  }
  if (const float rate = context.op().Float("rate"); !(rate > 0 && rate <= 1)) {
    return context.Error("rate must be above 0 and at most 1");
  }
  context.SetOutput("Out", out);
  return Status::Ok();
}

/// A column of floats or of whole numbers, read as floats.
class Column {
 public:
  Status Bind(KernelContext& context, const char* parameter) {
    MR_ASSIGN(tensor_, context.OptionalInput(parameter));
    if (tensor_ != nullptr) name_ = context.InputName(parameter);
    return Status::Ok();
  }
  bool bound() const { return tensor_ != nullptr; }
  const Tensor& tensor() const { return *tensor_; }
  const std::string& name() const { return name_; }
  int64_t rows() const { return tensor_->numel(); }
  float At(int64_t row) const {
    return tensor_->dtype() == DType::kFloat32 ? tensor_->data<float>()[row]
                                               : static_cast<float>(tensor_->data<int64_t>()[row]);
  }

 private:
  const Tensor* tensor_ = nullptr;
  std::string name_;
};

class ExampleWeightsKernel : public BoundKernel<ExampleWeightsKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(label_.Bind(context, "Label"));
    MR_TRY(weight_.Bind(context, "Weight"));
    MR_TRY(mask_.Bind(context, "Mask"));
    MR_TRY(thinned_.Bind(context, "Thinned"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(label_out_, context.OptionalOutput("LabelOut"));
    class_weight_ = context.op().Floats("class_weight");
    thinned_label_ = context.op().Float("thinned_label");
    is_thinned_ = thinned_.bound() && !context.op().Bool("is_test");
    of_thinned_ = 1 / context.op().Float("rate");
    loss_ = context.op().String("loss");
    // What an evaluation counts says nothing of what was learnt.
    monitor_ = loss_.empty() || context.options().read_only ? nullptr : context.options().label_monitor;
    return Status::Ok();
  }

  Status Run(const RunContext& context) override {
    const Column& any = label_.bound() ? label_ : weight_.bound() ? weight_ : mask_.bound() ? mask_ : thinned_;
    const int64_t rows = any.rows();
    for (const Column* column : {&label_, &weight_, &mask_, &thinned_}) {
      if (!column->bound() || column->rows() == rows) continue;
      return BadData("\"" + any.name() + "\" has " + std::to_string(rows) + " rows, and \"" + column->name() +
                     "\" has " + std::to_string(column->rows()));
    }
    float* out = out_->Resize<float>({rows, 1});
    bool counts = false;
    for (int64_t row = 0; row < rows; ++row) {
      MR_ASSIGN(out[row], WeightOf(context, row));
      counts = counts || out[row] > 0;
    }
    if (label_out_ != nullptr) CopyLabels(rows, out);
    Tell(rows > 0, counts);
    return Status::Ok();
  }

 private:
  Result<float> WeightOf(const RunContext& context, int64_t row) const {
    if (mask_.bound()) {
      const float mask = mask_.At(row);
      if (mask == 0) return 0.0F;
      if (mask != 1) return Refused(context, row, "mask", mask_, "a mask is 1 for an example that counts, else 0");
    }
    float weight = 1;
    if (weight_.bound()) {
      weight = weight_.At(row);
      if (!(weight >= 0) || !std::isfinite(weight)) {
        return Refused(context, row, "sample_weight", weight_, "a weight is a number from 0 on");
      }
    }
    if (is_thinned_ && thinned_.At(row) == thinned_label_) weight *= of_thinned_;
    if (class_weight_.empty()) return weight;
    MR_ASSIGN(const float of_class, OfClass(context, row, label_.At(row)));
    return weight * of_class;
  }

  Result<float> OfClass(const RunContext& context, int64_t row, float label) const {
    const std::optional<float> weight = ClassWeight(class_weight_, label);
    if (weight.has_value()) return *weight;
    return Refused(context, row, "label", label_,
                   "class_weight has weights of the labels 0 to " + std::to_string(class_weight_.size() - 1));
  }

  Status Refused(const RunContext& context, int64_t row, const char* what, const Column& column,
                 const std::string& why) const {
    return BadData(std::string(what) + " \"" + column.name() + "\" of " + context.DescribeRow(static_cast<int>(row)) +
                   " is " + ShortestNumber(static_cast<double>(column.At(row))) + ": " + why);
  }

  /// The labels, 0 where an example does not count.
  void CopyLabels(int64_t rows, const float* weights) {
    const auto copy = [&](auto zero) {
      using T = decltype(zero);
      const T* from = label_.tensor().data<T>();
      T* to = label_out_->Resize<T>({rows, 1});
      for (int64_t row = 0; row < rows; ++row) to[row] = weights[row] > 0 ? from[row] : zero;
    };
    if (label_.tensor().dtype() == DType::kFloat32) {
      copy(0.0F);
    } else {
      copy(int64_t{0});
    }
  }

  /// Lets the job know, once, that there are examples, and once that one of them counts.
  void Tell(bool has_rows, bool counts) {
    const bool is_news = (has_rows && !told_rows_) || (counts && !told_weight_);
    if (monitor_ == nullptr || !is_news) [[likely]]
      return;
    monitor_->OfWeights(loss_, counts);
    told_rows_ = true;
    told_weight_ = told_weight_ || counts;
  }

  Column label_;
  Column weight_;
  Column mask_;
  Column thinned_;
  Tensor* out_ = nullptr;
  Tensor* label_out_ = nullptr;
  std::vector<float> class_weight_;
  bool is_thinned_ = false;
  float thinned_label_ = 0;
  float of_thinned_ = 1;
  std::string loss_;
  LabelRangeMonitor* monitor_ = nullptr;
  bool told_rows_ = false;
  bool told_weight_ = false;
};

}  // namespace

void RegisterExampleWeights(OpRegistry& registry) {
  registry.Add("example_weights")
      .Doc(
          "Out = Mask * Weight * class_weight[Label], one weight an example. Refuses what is no weight and no mask, "
          "with "
          "its line. LabelOut is Label, with 0 where Out is 0.")
      .OptionalInput("Label", "[rows, 1], float32 or int64")
      .OptionalInput("Weight", "[rows, 1], float32 or int64: 0 or more")
      .OptionalInput("Mask", "[rows, 1], float32 or int64: 0 or 1")
      .OptionalInput("Thinned", "[rows, 1], float32 or int64: the label by which examples were left out of a training")
      .Output("Out", "[rows, 1]")
      .OptionalOutput("LabelOut", "shape and type of Label")
      .Attr("class_weight", std::vector<float>{}, "weights of the labels 0, 1, ...; empty: all alike")
      .Attr("thinned_label", 0.0F, "the value of Thinned of which the training has a share")
      .Attr("rate", 1.0F, "that share: each example of the value counts as 1 / rate of them")
      .Attr("is_test", false, "nothing was thinned out")
      .Attr("loss", std::string(), "whose weights they are, for the word that all of them are 0")
      .InferShape(InferExampleWeights)
      .Kernel<ExampleWeightsKernel>();
}

}  // namespace millrace
