#include <algorithm>

#include "kernels/gemm.h"
#include "ops/float_input.h"
#include "ops/forward_product.h"
#include "ops/grad_input.h"
#include "ops/nn/image_window.h"

namespace millrace {
namespace {

/// What Paddle's passes for inference join to a convolution; it writes them of every depthwise_conv2d, as false.
constexpr const char* kJoined[] = {"fuse_relu", "fuse_relu_before_depthwise_conv", "fuse_residual_connection"};

void AddConvAttrs(OpBuilder& op) {
  AddWindowAttrs(op, true);
  op.Attr("groups", int64_t{1}, "groups of channels, each of which makes its part of the outputs");
  for (const char* name : kJoined) op.Attr(name, false, "as Paddle writes it; must be false");
  op.Attr("fuse_activation", std::string(), "as Paddle writes it; must be empty");
  for (const char* name : {"fuse_alpha", "fuse_beta"}) op.Attr(name, 0.0F, "of fuse_activation; changes nothing");
}

Status CheckNothingJoined(const InferShapeContext& context) {
  for (const char* name : kJoined) {
    if (!context.op().Bool(name)) continue;
    return context.Error(std::string(name) + " is not supported; export the program as it was before Paddle's passes");
  }
  const std::string activation = context.op().String("fuse_activation");
  if (activation.empty()) return Status::Ok();
  return context.Error("fuse_activation \"" + activation +
                       "\" is not supported; export the program as it was before Paddle's passes");
}

Status InferConv(InferShapeContext& context) {
  MR_TRY(CheckNothingJoined(context));
  MR_ASSIGN(VarMeta x, context.Input("Input"));
  MR_ASSIGN(const VarMeta filter, context.Input("Filter"));
  MR_TRY(ExpectFloats(context, {"Input", "Filter"}));
  MR_ASSIGN(const WindowRule rule, WindowRule::Read(context, true));
  const int64_t groups = context.op().Int("groups");
  if (groups < 1) return context.Error("groups must be at least 1, not " + std::to_string(groups));
  if (groups > 1 && rule.channels_last()) {
    return context.Error("groups of channels need data_format NCHW, not NHWC");
  }
  const std::string shapes = "Input " + x.dims.ToString() + " and Filter " + filter.dims.ToString();
  int64_t channels = 0;
  const bool fits = x.dims.rank() == 4 && filter.dims.rank() == 4 &&
                    !__builtin_mul_overflow(filter.dims[1], groups, &channels) &&
                    (channels < 0 || MayEqual(x.dims[rule.channel_axis()], channels)) &&
                    (filter.dims[0] < 0 || filter.dims[0] % groups == 0);
  if (!fits) {
    return context.Error(shapes + " must be [images, channels, height, width] and [outputs, channels / " +
                         std::to_string(groups) + ", height, width]" +
                         (rule.channels_last() ? ", the channels of Input last" : ""));
  }
  x.dims.set(rule.channel_axis(), filter.dims[0]);
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t size = rule.OutSize(axis, x.dims[rule.height_axis() + axis], filter.dims[2 + axis]);
    if (size == 0) return context.Error("the filter is larger than an image: " + shapes);
    x.dims.set(rule.height_axis() + axis, size);
  }
  context.SetOutput("Output", x);
  return Status::Ok();
}

/// The numbers of one batch's convolution.
struct ConvSizes {
  int64_t images, channels, outputs;
  std::array<int64_t, 2> image, filter, out, pad;
  int64_t channel_step, row_step, pixel_step;  ///< from one value of an image to the next
  bool whole;                                  ///< a filter of 1 by 1 at every pixel: the columns are the image

  ConvSizes(const WindowRule& rule, int64_t groups, const Dims& x, const Dims& filter_dims)
      : images(x[0]), channels(x[rule.channel_axis()]), outputs(filter_dims[0]) {
    for (int axis = 0; axis < 2; ++axis) {
      const auto i = static_cast<size_t>(axis);
      image[i] = x[rule.height_axis() + axis];
      filter[i] = filter_dims[2 + axis];
      out[i] = rule.OutSize(axis, image[i], filter[i]);
      pad[i] = rule.PadBefore(axis, image[i], filter[i]);
    }
    channel_step = rule.channels_last() ? 1 : image[0] * image[1];
    pixel_step = rule.channels_last() ? channels : 1;
    row_step = image[1] * pixel_step;
    whole = groups == 1 && !rule.channels_last() && filter[0] == 1 && filter[1] == 1 && out == image && pad[0] == 0 &&
            pad[1] == 0 && rule.strides[0] == 1 && rule.strides[1] == 1;
  }
  int64_t pixels() const { return out[0] * out[1]; }
  int64_t image_size() const { return channels * image[0] * image[1]; }
  int64_t depth(int64_t groups) const { return channels / groups * filter[0] * filter[1]; }
};

/// Calls body(column, at) for each value of the columns [depth, pixels] of a group's image: `at` is its place in the
/// image, or -1 in the padding.
template <class Body>
void ForEachColumn(const WindowRule& rule, const ConvSizes& s, int64_t groups, int64_t group, const Body& body) {
  const int64_t own = s.channels / groups;
  int64_t column = 0;
  for (int64_t c = group * own; c < (group + 1) * own; ++c) {
    for (int64_t i = 0; i < s.filter[0]; ++i) {
      for (int64_t j = 0; j < s.filter[1]; ++j) {
        for (int64_t y = 0; y < s.out[0]; ++y) {
          const int64_t row = y * rule.strides[0] + i * rule.dilations[0] - s.pad[0];
          const bool in_row = row >= 0 && row < s.image[0];
          int64_t pixel = j * rule.dilations[1] - s.pad[1];
          for (int64_t x = 0; x < s.out[1]; ++x, pixel += rule.strides[1]) {
            const bool inside = in_row && pixel >= 0 && pixel < s.image[1];
            body(column++, inside ? c * s.channel_step + row * s.row_step + pixel * s.pixel_step : -1);
          }
        }
      }
    }
  }
}

/// What both kernels share: the input, the filter, and how the window moves.
struct ConvInputs {
  const Tensor* x = nullptr;
  FloatInput filter;
  WindowRule rule;
  int64_t groups = 1;
  Tensor columns;

  Status Bind(KernelContext& context) {
    MR_ASSIGN(x, context.Input("Input"));
    MR_ASSIGN(filter, FloatInput::Bind(context, "Filter"));
    rule = WindowRule::Of(context.op(), true);
    groups = context.op().Int("groups");
    return Status::Ok();
  }
  Status Check() const {
    const Dims& dims = filter.dims();
    const bool fits = x->dims().rank() == 4 && dims.rank() == 4 && x->dims()[rule.channel_axis()] / groups == dims[1] &&
                      x->dims()[rule.channel_axis()] % groups == 0 && dims[0] % groups == 0;
    if (fits) {
      const ConvSizes s(rule, groups, x->dims(), dims);
      if (s.out[0] > 0 && s.out[1] > 0) return Status::Ok();
    }
    return BadData("Input " + x->dims().ToString() + " and Filter " + Shown(filter.name(), dims) + " do not fit");
  }
  /// The columns [depth, pixels] of one image.
  const float* Columns(const ConvSizes& s, const float* image, int64_t group) {
    if (s.whole) return image;
    float* to = columns.Resize<float>({s.depth(groups), s.pixels()});
    ForEachColumn(rule, s, groups, group, [&](int64_t column, int64_t at) { to[column] = at < 0 ? 0 : image[at]; });
    return to;
  }
};

class ConvKernel : public BoundKernel<ConvKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(in_.Bind(context));
    MR_ASSIGN(out_, context.Output("Output"));
    const bool last = in_.rule.channels_last();
    product_ = std::make_unique<Gemm>(
        ForwardProduct(context, last ? "Filter" : "", {.transpose_a = last, .transpose_b = last}));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(in_.Check());
    const ConvSizes s(in_.rule, in_.groups, in_.x->dims(), in_.filter.dims());
    Dims dims = in_.x->dims();
    dims.set(in_.rule.channel_axis(), s.outputs);
    for (int axis = 0; axis < 2; ++axis) dims.set(in_.rule.height_axis() + axis, s.out[static_cast<size_t>(axis)]);
    const float* filter = in_.filter.ReadInPlace();
    const float* x = in_.x->data<float>();
    float* out = out_->Resize<float>(dims);
    const int64_t own = s.outputs / in_.groups;
    const int64_t depth = s.depth(in_.groups);
    for (int64_t image = 0; image < s.images; ++image, x += s.image_size()) {
      for (int64_t group = 0; group < in_.groups; ++group, out += own * s.pixels()) {
        const float* columns = in_.Columns(s, x, group);
        const float* part = filter + group * own * depth;
        MR_TRY(in_.rule.channels_last() ? product_->Run(s.pixels(), own, depth, columns, part, nullptr, out)
                                        : product_->Run(own, s.pixels(), depth, part, columns, nullptr, out));
      }
    }
    return Status::Ok();
  }

 private:
  ConvInputs in_;
  Tensor* out_ = nullptr;
  std::unique_ptr<Gemm> product_;
};

class ConvGradKernel : public BoundKernel<ConvGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_TRY(in_.Bind(context));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Output@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("Input@GRAD"));
    MR_ASSIGN(filter_grad_, context.OptionalOutput("Filter@GRAD"));
    const bool last = in_.rule.channels_last();
    const bool bf16 = context.options().bf16;
    for_x_ = std::make_unique<Gemm>(GemmSpec{.transpose_a = true, .transpose_b = last, .bf16 = bf16});
    for_filter_ = std::make_unique<Gemm>(GemmSpec{.transpose_a = last, .transpose_b = true, .bf16 = bf16});
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(in_.Check());
    const ConvSizes s(in_.rule, in_.groups, in_.x->dims(), in_.filter.dims());
    const float* filter = in_.filter.ReadInPlace();
    const float* x = in_.x->data<float>();
    MR_ASSIGN(const float* grad, out_grad_.Read(s.images * s.outputs * s.pixels()));
    float* x_grad = x_grad_ == nullptr ? nullptr : x_grad_->Resize<float>(in_.x->dims());
    float* sum = filter_grad_ == nullptr ? nullptr : filter_grad_->Resize<float>(in_.filter.dims());
    if (x_grad != nullptr && !s.whole) std::fill_n(x_grad, in_.x->numel(), 0.0F);
    if (sum != nullptr) std::fill_n(sum, in_.filter.tensor().numel(), 0.0F);
    const int64_t own = s.outputs / in_.groups;
    const int64_t part = own * s.depth(in_.groups);
    for (int64_t image = 0; image < s.images; ++image) {
      for (int64_t group = 0; group < in_.groups; ++group, grad += own * s.pixels()) {
        if (x_grad != nullptr) MR_TRY(AddToImage(s, group, filter + group * part, grad, x_grad));
        if (sum != nullptr) MR_TRY(AddToFilter(s, group, x, grad, sum + group * part));
      }
      x += s.image_size();
      if (x_grad != nullptr) x_grad += s.image_size();
    }
    return Status::Ok();
  }

 private:
  Status AddToImage(const ConvSizes& s, int64_t group, const float* filter, const float* grad, float* image) {
    const int64_t depth = s.depth(in_.groups);
    float* columns = s.whole ? image : column_grads_.Resize<float>({depth, s.pixels()});
    MR_TRY(for_x_->Run(depth, s.pixels(), s.outputs / in_.groups, filter, grad, nullptr, columns));
    if (s.whole) return Status::Ok();
    ForEachColumn(in_.rule, s, in_.groups, group, [&](int64_t column, int64_t at) {
      if (at >= 0) image[at] += columns[column];
    });
    return Status::Ok();
  }
  Status AddToFilter(const ConvSizes& s, int64_t group, const float* x, const float* grad, float* sum) {
    const int64_t own = s.outputs / in_.groups;
    const int64_t depth = s.depth(in_.groups);
    float* part = part_.Resize<float>({own, depth});
    MR_TRY(for_filter_->Run(own, depth, s.pixels(), grad, in_.Columns(s, x, group), nullptr, part));
    for (int64_t i = 0; i < own * depth; ++i) sum[i] += part[i];
    return Status::Ok();
  }

  ConvInputs in_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* filter_grad_ = nullptr;
  Tensor part_;
  Tensor column_grads_;
  std::unique_ptr<Gemm> for_x_;
  std::unique_ptr<Gemm> for_filter_;
};

void RegisterConv(OpRegistry& registry, const std::string& type, const std::string& doc) {
  OpBuilder forward = registry.Add(type);
  AddConvAttrs(forward);
  forward.Apart()
      .Doc(doc)
      .Input("Input", "[images, channels, height, width]")
      .Input("Filter", "[outputs, channels / groups, height, width]")
      .Output("Output", "[images, outputs, height, width]")
      .InferShape(InferConv)
      .Grad({.inputs = {"Input", "Filter"}, .of = {"Output"}, .to = {"Input", "Filter"}})
      .Kernel<ConvKernel>();
  registry.AddGradient(type).Kernel<ConvGradKernel>();
}

}  // namespace

void RegisterConv2d(OpRegistry& registry) {
  RegisterConv(registry, "conv2d", "Convolution: each output is a sum over a window of the channels.");
  RegisterConv(registry, "depthwise_conv2d", "Convolution whose channels do not mix; as conv2d with groups.");
}

}  // namespace millrace
