#include <algorithm>
#include <cmath>

#include "core/numbers.h"
#include "ops/float_input.h"
#include "ops/kernel.h"
#include "ops/sparse_gradient.h"

namespace millrace {
namespace {

// What programs do to sparse gradients between the backward part and the update: merge, look at, and clip them.

class MergeRowsKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<MergeRowsKernel>();
    MR_ASSIGN(kernel->x_, RowsInput(context, "X"));
    if (kernel->x_ == nullptr)
      return InvalidConfig("merge_selected_rows: X \"" + context.InputName("X") + "\" is no sparse gradient");
    MR_ASSIGN(kernel->out_, RowsOutput(context, "Out"));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  Status Run(const RunContext&) override {
    CopyRows(
        merger_.Merge(*x_), [](float value) { return value; }, out_);
    return Status::Ok();
  }

 private:
  const SelectedRows* x_ = nullptr;
  SelectedRows* out_ = nullptr;
  RowMerger merger_;
};

Status InferTensorOfRows(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  x.kind = VarType::LOD_TENSOR;
  if (x.dims.rank() > 0) x.dims.set(0, -1);
  context.SetOutput("Out", x);
  return Status::Ok();
}

class TensorOfRowsKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<TensorOfRowsKernel>();
    MR_ASSIGN(kernel->x_, RowsInput(context, "X"));
    if (kernel->x_ == nullptr) {
      return InvalidConfig("get_tensor_from_selected_rows: X \"" + context.InputName("X") + "\" is no sparse gradient");
    }
    MR_ASSIGN(kernel->out_, context.Output("Out"));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  Status Run(const RunContext&) override {
    out_->ViewOf(x_->values, x_->values.dims());
    return Status::Ok();
  }

 private:
  const SelectedRows* x_ = nullptr;
  Tensor* out_ = nullptr;
};

Status InferClipByNorm(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  if (context.op().Float("max_norm") <= 0) {
    return context.Error("max_norm must be above 0, but is " + ShortestNumber(context.op().Float("max_norm")));
  }
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// What values are multiplied by so that their norm is at most `most`.
float NormFactor(const float* values, int64_t count, float most) {
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  const double norm = std::sqrt(squares);
  return norm <= static_cast<double>(most) ? 1 : static_cast<float>(static_cast<double>(most) / norm);
}

class ClipByNormKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    auto kernel = std::make_unique<ClipByNormKernel>();
    kernel->most_ = context.op().Float("max_norm");
    MR_ASSIGN(kernel->rows_, RowsInput(context, "X"));
    if (kernel->rows_ != nullptr) {
      MR_ASSIGN(kernel->out_rows_, RowsOutput(context, "Out"));
    } else {
      MR_ASSIGN(kernel->x_, FloatInput::Bind(context, "X"));
      MR_ASSIGN(kernel->out_, context.Output("Out"));
    }
    return std::unique_ptr<OpKernel>(std::move(kernel));
  }
  Status Run(const RunContext&) override {
    if (rows_ != nullptr) {
      const SelectedRows& merged = merger_.Merge(*rows_);
      const int64_t count = merged.rows.empty() ? 0 : merged.values.numel();
      const float factor = count == 0 ? 1 : NormFactor(merged.values.data<float>(), count, most_);
      CopyRows(
          merged, [factor](float value) { return value * factor; }, out_rows_);
      return Status::Ok();
    }
    const float* x = x_.Read();
    const int64_t count = x_.tensor().numel();
    const float factor = NormFactor(x, count, most_);
    float* out = ResizeLike(x_.tensor(), out_);
    for (int64_t i = 0; i < count; ++i) out[i] = x[i] * factor;
    return Status::Ok();
  }

 private:
  float most_ = 1;
  FloatInput x_;
  Tensor* out_ = nullptr;
  const SelectedRows* rows_ = nullptr;
  SelectedRows* out_rows_ = nullptr;
  RowMerger merger_;
};

}  // namespace

void RegisterSelectedRows(OpRegistry& registry) {
  registry.Add("merge_selected_rows")
      .Doc("A sparse gradient with equal rows added up.")
      .Input("X", "a sparse gradient")
      .Output("Out", "a sparse gradient in which each row occurs once")
      .InferShape(SameAsX)
      .Kernel<MergeRowsKernel>();
  registry.Add("get_tensor_from_selected_rows")
      .Doc("The values of a sparse gradient, without the numbers of the rows.")
      .Input("X", "a sparse gradient")
      .Output("Out", "[rows, width], not copied")
      .InferShape(InferTensorOfRows)
      .Kernel<TensorOfRowsKernel>();
  registry.Add("clip_by_norm")
      .Doc("X, scaled down where its norm is above max_norm; equal rows of a sparse X are added up first.")
      .Input("X", "any shape, or a sparse gradient")
      .Output("Out", "like X")
      .Attr("max_norm", 1.0F, "largest norm of Out")
      .InferShape(InferClipByNorm)
      .Kernel<ClipByNormKernel>();
}

}  // namespace millrace
