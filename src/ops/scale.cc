#include "ops/float_input.h"
#include "ops/kernel.h"
#include "ops/scalar_input.h"

namespace millrace {
namespace {

Status InferScale(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  if (x.dtype != DType::kInt64) MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  context.SetOutput("Out", x);
  return Status::Ok();
}

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
    if (x_.tensor().dtype() == DType::kInt64) {
      const int64_t* x = x_.tensor().data<int64_t>();
      const Dims dims = x_.dims();
      const std::span<const uint32_t> lod = x_.tensor().lod();
      auto* out = out_->Resize<int64_t>(dims);
      out_->set_lod(lod);
      const auto scale = static_cast<int64_t>(factor);
      const auto bias = static_cast<int64_t>(term);
      for (int64_t i = 0; i < count; ++i) out[i] = x[i] * scale + bias;
      return Status::Ok();
    }
    const float* x = x_.Read();
    float* out = ResizeLike(x_.tensor(), out_);
    for (int64_t i = 0; i < count; ++i) out[i] = x[i] * factor + term;
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
      .Input("X", "any shape")
      .OptionalInput("ScaleTensor", "[1], instead of scale")
      .Output("Out", "shape of X")
      .Attr("scale", 1.0F, "factor")
      .Attr("bias", 0.0F, "term")
      .Attr("bias_after_scale", true, "adds the bias after the product")
      .InferShape(InferScale)
      .Grad(ScaleGrad)
      .Kernel<ScaleKernel>();
}

}  // namespace millrace
