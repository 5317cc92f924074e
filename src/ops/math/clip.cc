#include <algorithm>

#include "core/numbers.h"
#include "kernels/not_a_number.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/number_types.h"
#include "ops/scalar_input.h"
#include "ops/sparse_gradient.h"

namespace millrace {
namespace {

Status InferClip(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  const float min = context.op().Float("min");
  const float max = context.op().Float("max");
  const bool told = !context.HasInput("Min") && !context.HasInput("Max");
  if (told && min > max) return context.Error("min " + ShortestNumber(min) + " is above max " + ShortestNumber(max));
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// The bounds of each batch.
struct Bounds {
  ScalarInput low;
  ScalarInput high;
  float min = 0;
  float max = 0;

  Status Bind(const KernelContext& context) {
    MR_ASSIGN(low, ScalarInput::Bind(context, "Min", static_cast<double>(context.op().Float("min"))));
    MR_ASSIGN(high, ScalarInput::Bind(context, "Max", static_cast<double>(context.op().Float("max"))));
    return Status::Ok();
  }
  Status Read() {
    MR_ASSIGN(const double least, low.Read());
    MR_ASSIGN(const double most, high.Read());
    min = static_cast<float>(least);
    max = static_cast<float>(most);
    return Status::Ok();
  }
  /// A bound that is NaN holds nothing: what it bounds is NaN.
  float Clip(float value) const { return SmallerOrNan(max, LargerOrNan(min, value)); }
  float Slope(float value, float grad) const { return value > min && value < max ? grad : ZeroOrNan(Clip(value)); }
  /// Whole numbers have whole bounds: what comes behind their point is left out, as Paddle does.
  template <class T>
  T Clip(T value) const {
    return std::min(std::max(value, ConvertValue<T>(min)), ConvertValue<T>(max));
  }
};

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
    return bounds_.Bind(context);
  }
  Status Run(const RunContext&) override {
    MR_TRY(bounds_.Read());
    const int64_t count = x_.tensor().numel();
    if (!out_grad_.bound()) {
      WithNumber(x_.tensor().dtype(), [&](auto sample) {
        using T = decltype(sample);
        const T* x = ReadNumbers<T>(x_);
        T* to = ResizeLikeIn<T>(x_.tensor(), target_);
        for (int64_t i = 0; i < count; ++i) to[i] = bounds_.Clip(x[i]);
      });
      return Status::Ok();
    }
    const float* x = x_.Read();
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    float* to = ResizeLike(x_.tensor(), target_);
    for (int64_t i = 0; i < count; ++i) to[i] = bounds_.Slope(x[i], grad[i]);
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput out_grad_;
  Tensor* target_ = nullptr;
  Bounds bounds_;
};

/// A sparse gradient: equal rows are added up first.
class ClipRowsKernel : public BoundKernel<ClipRowsKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, RowsInput(context, "X"));
    MR_ASSIGN(out_, RowsOutput(context, "Out"));
    return bounds_.Bind(context);
  }
  Status Run(const RunContext&) override {
    MR_TRY(bounds_.Read());
    CopyRows(
        merger_.Merge(*x_), [this](float value) { return bounds_.Clip(value); }, out_);
    return Status::Ok();
  }

 private:
  const SelectedRows* x_ = nullptr;
  SelectedRows* out_ = nullptr;
  Bounds bounds_;
  RowMerger merger_;
};

/// Picks the kernel by what X holds.
struct ClipFactory {
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    MR_ASSIGN(const SelectedRows* rows, RowsInput(context, "X"));
    return rows == nullptr ? ClipKernel::Create(context) : ClipRowsKernel::Create(context);
  }
};

}  // namespace

void RegisterClip(OpRegistry& registry) {
  registry.Add("clip")
      .Doc("Out = X, but not below min nor above max.")
      .Input("X", "float32, int64 or int32; any shape")
      .Output("Out", "shape of X")
      .Attr("min", 0.0F, "lower bound")
      .Attr("max", 0.0F, "upper bound")
      .OptionalInput("Min", "[1], instead of min")
      .OptionalInput("Max", "[1], instead of max")
      .InferShape(InferClip)
      .Grad({.inputs = {"X", "Min", "Max"}})
      .Kernel<ClipFactory>();
  registry.AddGradient("clip").Kernel<ClipKernel>();
}

}  // namespace millrace
