#include <algorithm>

#include "ops/float_input.h"
#include "ops/gemm.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

// Convolutions with filters of 1 by 1, which mix channels and nothing else: a matrix product for each image.

Status InferConv(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("Input"));
  MR_ASSIGN(const VarMeta filter, context.Input("Filter"));
  MR_TRY(ExpectDType(context, "Input", x, DType::kFloat32));
  MR_TRY(ExpectDType(context, "Filter", filter, DType::kFloat32));
  if (x.dims.rank() != 4 || filter.dims.rank() != 4 || !MayEqual(x.dims[1], filter.dims[1])) {
    return context.Error("Input " + x.dims.ToString() + " and Filter " + filter.dims.ToString() +
                         " must be [images, channels, height, width] and [outputs, channels, 1, 1]");
  }
  if (filter.dims[2] != 1 || filter.dims[3] != 1) {
    return context.Error("only filters of 1 by 1 are supported, not " + filter.dims.ToString());
  }
  const std::string format = context.op().String("data_format");
  if (format != "NCHW" && format != "AnyLayout")
    return context.Error("data_format is \"" + format + "\"; only NCHW is supported");
  x.dims.set(1, filter.dims[0]);
  context.SetOutput("Output", x);
  return Status::Ok();
}

class ConvKernel : public BoundKernel<ConvKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("Input"));
    MR_ASSIGN(filter_, FloatInput::Bind(context, "Filter"));
    MR_ASSIGN(out_, context.Output("Output"));
    product_ = std::make_unique<Gemm>(GemmSpec{.bf16 = context.options().bf16});
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    Dims dims = x_->dims();
    const int64_t inputs = dims[1];
    const int64_t outputs = filter_.dims()[0];
    const int64_t pixels = dims[2] * dims[3];
    dims.set(1, outputs);
    const float* filter = filter_.ReadInPlace();
    const float* x = x_->data<float>();
    float* out = out_->Resize<float>(dims);
    for (int64_t image = 0; image < dims[0]; ++image) {
      MR_TRY(product_->Run(outputs, pixels, inputs, filter, x, nullptr, out));
      x += inputs * pixels;
      out += outputs * pixels;
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  FloatInput filter_;
  Tensor* out_ = nullptr;
  std::unique_ptr<Gemm> product_;
};

class ConvGradKernel : public BoundKernel<ConvGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("Input"));
    MR_ASSIGN(filter_, FloatInput::Bind(context, "Filter"));
    MR_ASSIGN(out_grad_, context.Input("Output@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("Input@GRAD"));
    MR_ASSIGN(filter_grad_, context.OptionalOutput("Filter@GRAD"));
    for_x_ = std::make_unique<Gemm>(GemmSpec{.transpose_a = true, .bf16 = context.options().bf16});
    for_filter_ = std::make_unique<Gemm>(GemmSpec{.transpose_b = true, .bf16 = context.options().bf16});
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_->dims();
    const int64_t inputs = dims[1];
    const int64_t outputs = filter_.dims()[0];
    const int64_t pixels = dims[2] * dims[3];
    const float* filter = filter_.ReadInPlace();
    const float* x = x_->data<float>();
    const float* grad = out_grad_->data<float>();
    float* x_grad = x_grad_ == nullptr ? nullptr : x_grad_->Resize<float>(dims);
    float* sum = filter_grad_ == nullptr ? nullptr : filter_grad_->Resize<float>(filter_.dims());
    if (sum != nullptr) std::fill_n(sum, outputs * inputs, 0.0F);
    for (int64_t image = 0; image < dims[0]; ++image) {
      if (x_grad != nullptr) {
        MR_TRY(for_x_->Run(inputs, pixels, outputs, filter, grad, nullptr, x_grad));
        x_grad += inputs * pixels;
      }
      if (sum != nullptr) {
        float* part = part_.Resize<float>({outputs, inputs});
        MR_TRY(for_filter_->Run(outputs, inputs, pixels, grad, x, nullptr, part));
        for (int64_t i = 0; i < outputs * inputs; ++i) sum[i] += part[i];
      }
      x += inputs * pixels;
      grad += outputs * pixels;
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  FloatInput filter_;
  const Tensor* out_grad_ = nullptr;
  Tensor* x_grad_ = nullptr;
  Tensor* filter_grad_ = nullptr;
  Tensor part_;
  std::unique_ptr<Gemm> for_x_;
  std::unique_ptr<Gemm> for_filter_;
};

std::vector<OpDesc> ConvGrad(const GradContext& context) {
  if (!context.Has("Output") || !(context.Wants("Input") || context.Wants("Filter"))) return {};
  return {context.GradOp({"Input", "Filter"}, {}, {"Output"}, {"Input", "Filter"})};
}

}  // namespace

void RegisterConv2d(OpRegistry& registry) {
  registry.Add("conv2d")
      .Doc("Mixes the channels of each pixel: a convolution with a filter of 1 by 1.")
      .Input("Input", "[images, channels, height, width]")
      .Input("Filter", "[outputs, channels, 1, 1]")
      .Output("Output", "[images, outputs, height, width]")
      .Fixed("strides", std::vector<int64_t>{1, 1}, "steps of the filter")
      .Fixed("paddings", std::vector<int64_t>{0, 0}, "pixels added around an image")
      .Fixed("dilations", std::vector<int64_t>{1, 1}, "steps within the filter")
      .Fixed("groups", int64_t{1}, "groups of channels")
      .Attr("padding_algorithm", std::string("EXPLICIT"), "changes nothing for a filter of 1 by 1")
      .Attr("data_format", std::string("NCHW"), "order of the axes: NCHW")
      .InferShape(InferConv)
      .Grad(ConvGrad)
      .Kernel<ConvKernel>();
  registry.Add("conv2d_grad")
      .Doc("Gradient of conv2d.")
      .Input("Input", "of the forward operator")
      .Input("Filter", "of the forward operator")
      .Input("Output@GRAD", "gradient of Output")
      .OptionalOutput("Input@GRAD", "gradient of Input")
      .OptionalOutput("Filter@GRAD", "gradient of Filter")
      .InferShape(InferGradients)
      .Gradient()
      .Kernel<ConvGradKernel>();
}

}  // namespace millrace
