#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/lane_sums.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

Status InferLayerNorm(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  const int64_t axis = context.op().Int("begin_norm_axis");
  if (axis < 1 || axis >= x.dims.rank()) {
    return context.Error("begin_norm_axis is " + std::to_string(axis) + " of X " + x.dims.ToString());
  }
  const int64_t width = KnownProduct(x.dims, static_cast<int>(axis), x.dims.rank());
  MR_TRY(ExpectFloats(context, {"Scale", "Bias"}, width));
  context.SetOutput("Y", x);
  x.dims = Dims{KnownProduct(x.dims, 0, static_cast<int>(axis))};
  x.lod_level = 0;
  context.SetOutput("Mean", x);
  context.SetOutput("Variance", x);
  return Status::Ok();
}

Status CheckAxis(const Dims& x, int axis) {
  if (axis >= 0 && axis <= x.rank()) return Status::Ok();
  return InvalidConfig("X " + x.ToString() + " has no axis " + std::to_string(axis));
}

class LayerNormKernel : public BoundKernel<LayerNormKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(scale_, FloatInput::BindOptional(context, "Scale"));
    MR_ASSIGN(bias_, FloatInput::BindOptional(context, "Bias"));
    MR_ASSIGN(y_, context.Output("Y"));
    MR_ASSIGN(mean_, context.Output("Mean"));
    MR_ASSIGN(variance_, context.Output("Variance"));
    axis_ = static_cast<int>(context.op().Int("begin_norm_axis"));
    epsilon_ = context.op().Float("epsilon");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_->dims();
    MR_TRY(CheckAxis(dims, axis_));
    const int64_t rows = dims.Product(0, axis_);
    const int64_t width = dims.Product(axis_, dims.rank());
    MR_TRY(scale_.Expect(width));
    MR_TRY(bias_.Expect(width));
    const float* x = x_->data<float>();
    const float* scale = scale_.bound() ? scale_.Read() : nullptr;
    const float* bias = bias_.bound() ? bias_.Read() : nullptr;
    const Dims leading(dims.sizes().first(static_cast<size_t>(axis_)));
    float* mean = mean_->Resize<float>(leading);
    float* variance = variance_->Resize<float>(leading);
    float* y = ResizeLike(*x_, y_);
    for (int64_t i = 0; i < rows; ++i, x += width, y += width) {
      const double center = LaneSums().values(x, width) / static_cast<double>(width);
      const double squares = LaneSums().squares(x, width, center);
      mean[i] = static_cast<float>(center);
      variance[i] = static_cast<float>(squares / static_cast<double>(width));
      const float factor = 1 / std::sqrt(variance[i] + epsilon_);
      for (int64_t j = 0; j < width; ++j) {
        const float normal = (x[j] - mean[i]) * factor;
        y[j] = normal * (scale == nullptr ? 1 : scale[j]) + (bias == nullptr ? 0 : bias[j]);
      }
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  FloatInput scale_;
  FloatInput bias_;
  Tensor* y_ = nullptr;
  Tensor* mean_ = nullptr;
  Tensor* variance_ = nullptr;
  int axis_ = 1;
  float epsilon_ = 0;
};

class LayerNormGradKernel : public BoundKernel<LayerNormGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(mean_, GradInput::Bind(context, "Mean"));
    MR_ASSIGN(variance_, GradInput::Bind(context, "Variance"));
    MR_ASSIGN(scale_, FloatInput::BindOptional(context, "Scale"));
    MR_ASSIGN(y_grad_, GradInput::Bind(context, "Y@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(scale_grad_, context.OptionalOutput("Scale@GRAD"));
    MR_ASSIGN(bias_grad_, context.OptionalOutput("Bias@GRAD"));
    axis_ = static_cast<int>(context.op().Int("begin_norm_axis"));
    epsilon_ = context.op().Float("epsilon");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_->dims();
    MR_TRY(CheckAxis(dims, axis_));
    const int64_t rows = dims.Product(0, axis_);
    const int64_t width = dims.Product(axis_, dims.rank());
    const float* x = x_->data<float>();
    MR_ASSIGN(const float* grad, y_grad_.Read(dims.numel()));
    MR_ASSIGN(const float* means, mean_.Read(rows));
    MR_ASSIGN(const float* variances, variance_.Read(rows));
    MR_TRY(scale_.Expect(width));
    const float* scale = scale_.bound() ? scale_.Read() : nullptr;
    float* x_grad = x_grad_ == nullptr ? nullptr : ResizeLike(*x_, x_grad_);
    float* scale_grad = Cleared(scale_grad_, width);
    float* bias_grad = Cleared(bias_grad_, width);
    for (int64_t i = 0; i < rows; ++i, x += width, grad += width) {
      const float mean = means[i];
      const float factor = 1 / std::sqrt(variances[i] + epsilon_);
      // Four sums each, which do not wait for one another.
      std::array<double, 4> sums{};
      std::array<double, 4> products{};
      const auto add = [&](int64_t j, size_t lane) {
        const float g = grad[j] * (scale == nullptr ? 1 : scale[j]);
        sums[lane] += static_cast<double>(g);
        products[lane] += static_cast<double>(g * ((x[j] - mean) * factor));
      };
      int64_t first = 0;
      for (; first + 4 <= width; first += 4) {
        for (size_t lane = 0; lane < 4; ++lane) add(first + static_cast<int64_t>(lane), lane);
      }
      for (; first < width; ++first) add(first, 0);
      const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
      const double product = (products[0] + products[1]) + (products[2] + products[3]);
      if (scale_grad != nullptr) {
        for (int64_t j = 0; j < width; ++j) scale_grad[j] += grad[j] * ((x[j] - mean) * factor);
      }
      if (bias_grad != nullptr) {
        for (int64_t j = 0; j < width; ++j) bias_grad[j] += grad[j];
      }
      if (x_grad == nullptr) continue;
      const auto mean_g = static_cast<float>(sum / static_cast<double>(width));
      const auto mean_product = static_cast<float>(product / static_cast<double>(width));
      for (int64_t j = 0; j < width; ++j) {
        const float normal = (x[j] - mean) * factor;
        x_grad[j] = (grad[j] * (scale == nullptr ? 1 : scale[j]) - mean_g - normal * mean_product) * factor;
      }
      x_grad += width;
    }
    return Status::Ok();
  }

 private:
  static float* Cleared(Tensor* tensor, int64_t width) {
    if (tensor == nullptr) return nullptr;
    float* values = tensor->Resize<float>({width});
    std::fill_n(values, width, 0.0F);
    return values;
  }

  const Tensor* x_ = nullptr;
  GradInput mean_;
  GradInput variance_;
  FloatInput scale_;
  GradInput y_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* scale_grad_ = nullptr;
  Tensor* bias_grad_ = nullptr;
  int axis_ = 1;
  float epsilon_ = 0;
};

}  // namespace

void RegisterLayerNorm(OpRegistry& registry) {
  const std::string axis = "first of the axes that one mean is taken over";
  registry.Add("layer_norm")
      .Doc("Each row less its mean, over its standard deviation, times Scale, plus Bias.")
      .Input("X", "[rows, ...]")
      .OptionalInput("Scale", "[values of a row]; 1 without it")
      .OptionalInput("Bias", "[values of a row]; 0 without it")
      .Output("Y", "shape of X")
      .Output("Mean", "the axes of X before begin_norm_axis")
      .Output("Variance", "the same")
      .Attr("epsilon", 1e-5F, "keeps the quotient finite")
      .Attr("begin_norm_axis", int64_t{1}, axis)
      .InferShape(InferLayerNorm)
      .Grad({.inputs = {"X", "Scale", "Bias"},
             .outputs = {"Mean", "Variance"},
             .of = {"Y"},
             .to = {"X", "Scale", "Bias"}})
      .Kernel<LayerNormKernel>();
  registry.AddGradient("layer_norm").Kernel<LayerNormGradKernel>();
}

}  // namespace millrace
