#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferAccuracy(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta indices, context.Input("Indices"));
  MR_ASSIGN(const VarMeta label, context.Input("Label"));
  MR_TRY(ExpectDType(context, "Indices", indices, DType::kInt64));
  MR_TRY(ExpectDType(context, "Label", label, DType::kInt64));
  if (indices.dims.rank() != 2) {
    return context.Error("Indices " + Shown(InputArguments(context.op().desc(), "Indices")[0], indices.dims) +
                         " must have two axes");
  }
  VarMeta out;
  out.dims = Dims{1};
  context.SetOutput("Accuracy", out);
  out.dtype = DType::kInt32;
  context.SetOutput("Correct", out);
  context.SetOutput("Total", out);
  return Status::Ok();
}

class AccuracyKernel : public BoundKernel<AccuracyKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(values_, context.Input("Out"));
    MR_ASSIGN(indices_, context.Input("Indices"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(accuracy_, context.Output("Accuracy"));
    MR_ASSIGN(correct_, context.Output("Correct"));
    MR_ASSIGN(total_, context.Output("Total"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t rows = indices_->dims()[0];
    const int64_t k = indices_->dims()[1];
    if (label_->numel() != rows) {
      return BadData("Label has " + std::to_string(label_->numel()) + " values for " + std::to_string(rows) + " rows");
    }
    const int64_t* indices = indices_->data<int64_t>();
    const int64_t* label = label_->data<int64_t>();
    int32_t correct = 0;
    for (int64_t i = 0; i < rows; ++i, indices += k) {
      if (std::find(indices, indices + k, label[i]) != indices + k) ++correct;
    }
    *correct_->Resize<int32_t>({1}) = correct;
    *total_->Resize<int32_t>({1}) = static_cast<int32_t>(rows);
    const float share = rows == 0 ? 0 : static_cast<float>(correct) / static_cast<float>(rows);
    *accuracy_->Resize<float>({1}) = HasNan() ? std::numeric_limits<float>::quiet_NaN() : share;
    return Status::Ok();
  }

 private:
  /// Where values are NaN, the places of the largest say nothing.
  bool HasNan() const {
    if (values_->empty() || values_->dtype() != DType::kFloat32) return false;
    const float* values = values_->data<float>();
    return std::any_of(values, values + values_->numel(), [](float value) { return std::isnan(value); });
  }

  const Tensor* values_ = nullptr;
  const Tensor* indices_ = nullptr;
  const Tensor* label_ = nullptr;
  Tensor* accuracy_ = nullptr;
  Tensor* correct_ = nullptr;
  Tensor* total_ = nullptr;
};

}  // namespace

void RegisterAccuracy(OpRegistry& registry) {
  registry.Add("accuracy")
      .Doc("The share of rows whose label is among the indices of top_k.")
      .Input("Out", "of top_k; a NaN among them makes Accuracy NaN")
      .Input("Indices", "of top_k, [rows, k]")
      .Input("Label", "int64 [rows, 1]")
      .Output("Accuracy", "[1]")
      .Output("Correct", "int32 [1]")
      .Output("Total", "int32 [1]")
      .InferShape(InferAccuracy)
      .Kernel<AccuracyKernel>();
}

}  // namespace millrace
