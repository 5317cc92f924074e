#include "ops/axis_lines.h"
#include "ops/float_input.h"
#include "ops/kernel.h"
#include "ops/number_types.h"

namespace millrace {
namespace {

/// The gradient is a sum that runs the other way.
class CumsumKernel : public BoundKernel<CumsumKernel> {
 public:
  Status Bind(KernelContext& context) {
    const bool backward = context.op().info().is_gradient;
    MR_ASSIGN(x_, FloatInput::Bind(context, backward ? "Out@GRAD" : "X"));
    MR_ASSIGN(out_, context.Output(backward ? "X@GRAD" : "Out"));
    axis_ = context.op().Int("axis");
    exclusive_ = context.op().Bool("exclusive");
    reverse_ = context.op().Bool("reverse") != backward;
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    WithNumber(x_.tensor().dtype(), [this](auto sample) { Add<decltype(sample)>(); });
    return Status::Ok();
  }

 private:
  template <class T>
  void Add() {
    using Sum = Wrapping<T>;
    const AxisLines lines = AxisLines::Of(x_.dims(), axis_);
    const T* x = ReadNumbers<T>(x_);
    T* out = ResizeLikeIn<T>(x_.tensor(), out_);
    lines.ForEach([&](int64_t, int64_t first) {
      Sum sum = 0;
      for (int64_t k = 0; k < lines.along; ++k) {
        const int64_t at = first + (reverse_ ? lines.along - 1 - k : k) * lines.inner;
        const auto value = static_cast<Sum>(x[at]);
        out[at] = static_cast<T>(exclusive_ ? sum : sum + value);
        sum += value;
      }
    });
  }

  FloatInput x_;
  Tensor* out_ = nullptr;
  int64_t axis_ = -1;
  bool exclusive_ = false;
  bool reverse_ = false;
};

Status InferCumsum(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(FrontAxis(context, context.op().Int("axis"), x.dims.rank()).status());
  context.SetOutput("Out", x);
  return Status::Ok();
}

}  // namespace

void RegisterCumsum(OpRegistry& registry) {
  registry.Add("cumsum")
      .Doc("Running sums along an axis.")
      .Input("X", "float32, int64 or int32; any shape")
      .Output("Out", "shape of X")
      .Attr("axis", int64_t{-1}, "negative: from the end")
      .Attr("exclusive", false, "a value is not in its own sum")
      .Attr("reverse", false, "from the end to the front")
      .Fixed("flatten", false, "sums over all values")
      .InferShape(InferCumsum)
      .Grad({.inputs = {"X"}, .optional = {"X"}})
      .Kernel<CumsumKernel>();
  registry.AddGradient("cumsum").Kernel<CumsumKernel>();
}

}  // namespace millrace
