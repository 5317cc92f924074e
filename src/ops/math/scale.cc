#include "ops/float_input.h"
#include "ops/math/map_op.h"
#include "ops/scalar_input.h"

namespace millrace {
namespace {

class ScaleKernel : public BoundKernel<ScaleKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(scale_, ScalarInput::Bind(context, "ScaleTensor", static_cast<double>(context.op().Float("scale"))));
    bias_ = context.op().Float("bias");
    bias_after_scale_ = context.op().Bool("bias_after_scale");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const double number, scale_.Read());
    const auto factor = static_cast<float>(number);
    // (x + bias) * scale = x * scale + bias * scale
    const float term = bias_after_scale_ ? bias_ : bias_ * factor;
    const int64_t count = x_.tensor().numel();
    WithNumber(x_.tensor().dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = ReadNumbers<T>(x_);
      T* out = ResizeLikeIn<T>(x_.tensor(), out_);
      const auto scale = ConvertValue<T>(factor);
      const auto bias = ConvertValue<T>(term);
      using W = Wrapping<T>;
      for (int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<T>(static_cast<W>(x[i]) * static_cast<W>(scale) + static_cast<W>(bias));
      }
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  ScalarInput scale_;
  float bias_ = 0;
  bool bias_after_scale_ = true;
};

/// The gradient of a scale is a scale without bias.
std::vector<OpDesc> ScaleGrad(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("X")) return {};
  const OpDesc names = context.GradOp({"ScaleTensor"}, {}, {"Out"}, {"X"});
  OpDesc grad;
  grad.set_type("scale");
  if (const OpDesc::Attr* scale = FindAttr(names, "scale"); scale != nullptr) *grad.add_attrs() = *scale;
  SetInput(grad, "X", InputArguments(names, "Out@GRAD"));
  SetInput(grad, "ScaleTensor", InputArguments(names, "ScaleTensor"));
  SetOutput(grad, "Out", OutputArguments(names, "X@GRAD"));
  return {grad};
}

}  // namespace

void RegisterScale(OpRegistry& registry) {
  registry.Add("scale")
      .Doc("Out = X * scale + bias, or (X + bias) * scale.")
      .Input("X", "float32, int64 or int32; any shape")
      .OptionalInput("ScaleTensor", "[1], instead of scale")
      .Output("Out", "shape of X")
      .Attr("scale", 1.0F, "factor")
      .Attr("bias", 0.0F, "term")
      .Attr("bias_after_scale", true, "adds the bias after the product")
      .InferShape(InferNumberMap)
      .Grad(ScaleGrad)
      .Kernel<ScaleKernel>();
}

}  // namespace millrace
