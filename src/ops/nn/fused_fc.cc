#include <algorithm>
#include <cmath>

#include "kernels/fc_gradient.h"
#include "kernels/gemm.h"
#include "kernels/softmax_row.h"
#include "ops/float_input.h"
#include "ops/forward_product.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

enum class FcActivation : uint8_t { kNone, kRelu, kSigmoid, kTanh, kSoftmax };

Result<FcActivation> ParseActivation(const OpView& op) {
  const std::string name = op.String("activation");
  if (name.empty()) return FcActivation::kNone;
  if (name == "relu") return FcActivation::kRelu;
  if (name == "sigmoid") return FcActivation::kSigmoid;
  if (name == "tanh") return FcActivation::kTanh;
  if (name == "softmax") return FcActivation::kSoftmax;
  return InvalidConfig(op.type() + ": activation is relu, sigmoid, tanh, softmax or none, not \"" + name + "\"");
}

Status InferFc(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta w, context.Input("W"));
  MR_TRY(ExpectFloats(context, {"X", "W"}));
  MR_TRY(ParseActivation(context.op()).status());
  const auto split = static_cast<int>(context.op().Int("in_num_col_dims"));
  const std::string shapes = "X " + Shown(InputArguments(context.op().desc(), "X")[0], x.dims) + ", W " +
                             Shown(InputArguments(context.op().desc(), "W")[0], w.dims);
  const bool splits = split >= 1 && split < x.dims.rank();
  if (!splits || w.dims.rank() != 2 || !MayEqual(KnownProduct(x.dims, split, x.dims.rank()), w.dims[0])) {
    return context.Error("the columns of X are not the rows of W: " + shapes);
  }
  if (context.HasInput("Bias")) {
    MR_ASSIGN(const VarMeta bias, context.Input("Bias"));
    if (!MayEqual(bias.dims.numel(), w.dims[1])) {
      return context.Error("Bias " + Shown(InputArguments(context.op().desc(), "Bias")[0], bias.dims) +
                           " does not fit " + shapes);
    }
  }
  VarMeta out = x;
  out.dims = Dims(x.dims.sizes().subspan(0, static_cast<size_t>(split)));
  out.dims.push_back(w.dims[1]);
  context.SetOutput("Out", out);
  return Status::Ok();
}

/// What a batch's own sizes decide.
Status CheckInner(const FloatInput& x, int split, const FloatInput& w) {
  if (split >= 1 && split < x.dims().rank() && x.dims().Product(split, x.dims().rank()) == w.dims()[0])
    return Status::Ok();
  return BadData("the columns of X " + Shown(x.name(), x.dims()) + " are not the rows of W " +
                 Shown(w.name(), w.dims()));
}

class FusedFcKernel : public BoundKernel<FusedFcKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(w_, FloatInput::Bind(context, "W"));
    MR_ASSIGN(bias_, FloatInput::BindOptional(context, "Bias"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(activation_, ParseActivation(context.op()));
    split_ = static_cast<int>(context.op().Int("in_num_col_dims"));
    gemm_ = std::make_unique<Gemm>(
        ForwardProduct(context, "W", {.bias = bias_.bound(), .relu = activation_ == FcActivation::kRelu}));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t rows = x_.dims().Product(0, split_);
    const int64_t inner = w_.dims()[0];
    const int64_t width = w_.dims()[1];
    MR_TRY(CheckInner(x_, split_, w_));
    MR_TRY(bias_.Expect(width));
    Dims dims(x_.dims().sizes().subspan(0, static_cast<size_t>(split_)));
    dims.push_back(width);
    float* out = out_->Resize<float>(dims);
    out_->set_lod(x_.tensor().lod());
    const float* bias = bias_.bound() ? bias_.ReadInPlace() : nullptr;
    MR_TRY(gemm_->Run(rows, width, inner, x_.ReadInPlace(), w_.ReadInPlace(), bias, out));
    const int64_t count = rows * width;
    switch (activation_) {
      case FcActivation::kSigmoid:
        for (int64_t i = 0; i < count; ++i) out[i] = 1 / (1 + std::exp(-out[i]));
        break;
      case FcActivation::kTanh:
        for (int64_t i = 0; i < count; ++i) out[i] = std::tanh(out[i]);
        break;
      case FcActivation::kSoftmax:
        for (int64_t i = 0; i < rows; ++i) SoftmaxRow(out + i * width, width, out + i * width);
        break;
      case FcActivation::kNone:
      case FcActivation::kRelu: break;
    }
    return Status::Ok();
  }

 private:
  FloatInput x_;
  FloatInput w_;
  FloatInput bias_;
  Tensor* out_ = nullptr;
  FcActivation activation_ = FcActivation::kNone;
  int split_ = 1;
  std::unique_ptr<Gemm> gemm_;
};

class FusedFcGradKernel : public BoundKernel<FusedFcGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(w_, FloatInput::Bind(context, "W"));
    MR_ASSIGN(out_, GradInput::Bind(context, "Out"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    split_ = static_cast<int>(context.op().Int("in_num_col_dims"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(w_grad_, context.OptionalOutput("W@GRAD"));
    MR_ASSIGN(bias_grad_, context.OptionalOutput("Bias@GRAD"));
    MR_ASSIGN(activation_, ParseActivation(context.op()));
    const bool bf16 = context.options().bf16;
    for_x_ = std::make_unique<Gemm>(GemmSpec{.transpose_b = true, .bf16 = bf16});
    for_w_ = std::make_unique<Gemm>(GemmSpec{.transpose_a = true, .bf16 = bf16});
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t inner = w_.dims()[0];
    const int64_t width = w_.dims()[1];
    MR_TRY(CheckInner(x_, split_, w_));
    const int64_t rows = x_.dims().Product(0, split_);
    MR_ASSIGN(const float* out, out_.Read(rows * width));
    MR_ASSIGN(const float* out_grad, out_grad_.Read(rows * width));
    const float* grad = BeforeActivation(out, out_grad, rows, width);
    if (x_grad_ != nullptr) {
      float* x_grad = ResizeLike(x_.tensor(), x_grad_);
      MR_TRY(for_x_->Run(rows, inner, width, grad, w_.ReadInPlace(), nullptr, x_grad));
    }
    if (w_grad_ == nullptr) return Status::Ok();
    float* w_grad = w_grad_->Resize<float>({inner, width});
    return for_w_->Run(inner, width, rows, x_.ReadInPlace(), grad, nullptr, w_grad);
  }

 private:
  /// The gradient of X * W + Bias. The bias's own, its column sums, is taken in the same pass.
  const float* BeforeActivation(const float* out, const float* grad, int64_t rows, int64_t width) {
    float* bias_grad = bias_grad_ == nullptr ? nullptr : bias_grad_->Resize<float>({width});
    if (activation_ == FcActivation::kNone) {
      if (bias_grad != nullptr) FcGradient().column_sums(grad, rows, width, bias_grad);
      return grad;
    }
    float* inner = inner_grad_.Resize<float>({rows, width});
    const int64_t count = rows * width;
    switch (activation_) {
      case FcActivation::kRelu: FcGradient().relu(out, grad, rows, width, inner, bias_grad); return inner;
      case FcActivation::kSigmoid:
        for (int64_t i = 0; i < count; ++i) inner[i] = grad[i] * out[i] * (1 - out[i]);
        break;
      case FcActivation::kTanh:
        for (int64_t i = 0; i < count; ++i) inner[i] = grad[i] * (1 - out[i] * out[i]);
        break;
      case FcActivation::kSoftmax:
        for (int64_t at = 0; at < count; at += width) SoftmaxGradRow(out + at, grad + at, width, inner + at);
        break;
      case FcActivation::kNone: break;
    }
    if (bias_grad != nullptr) FcGradient().column_sums(inner, rows, width, bias_grad);
    return inner;
  }

  FloatInput x_;
  FloatInput w_;
  GradInput out_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* w_grad_ = nullptr;
  Tensor* bias_grad_ = nullptr;
  Tensor inner_grad_;
  FcActivation activation_ = FcActivation::kNone;
  int split_ = 1;
  std::unique_ptr<Gemm> for_x_;
  std::unique_ptr<Gemm> for_w_;
};

Status InferFcGrad(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(VarMeta w, context.Input("W"));
  MR_TRY(ParseActivation(context.op()).status());
  if (w.dims.rank() != 2) return context.Error("W " + w.dims.ToString() + " must have two axes");
  context.SetOutput("X@GRAD", x);
  context.SetOutput("W@GRAD", w);
  w.dims = Dims{w.dims[-1]};
  context.SetOutput("Bias@GRAD", w);
  return Status::Ok();
}

}  // namespace

void RegisterFusedFc(OpRegistry& registry) {
  registry.Add("fused_fc")
      .Doc("Out = activation(X * W + Bias): mul, elementwise_add and activation in one.")
      .Input("X", "[..., inner]")
      .Input("W", "[inner, width]")
      .OptionalInput("Bias", "[width]")
      .Output("Out", "[..., width]")
      .Attr("in_num_col_dims", int64_t{1}, "axes of X that are rows")
      .Attr("activation", std::string(), "relu, sigmoid, tanh, softmax, or empty for none")
      .InferShape(InferFc)
      .Grad({.inputs = {"X", "W"}, .outputs = {"Out"}, .to = {"X", "W", "Bias"}})
      .Fused()
      .Kernel<FusedFcKernel>();
  registry.AddGradient("fused_fc").InferShape(InferFcGrad).Kernel<FusedFcGradKernel>();
}

}  // namespace millrace
