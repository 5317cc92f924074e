#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/not_a_number.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/nn/image_window.h"

namespace millrace {
namespace {

/// The windows of pool2d: which pixels each output sees.
struct PoolRule {
  WindowRule window;
  std::array<int64_t, 2> size{1, 1};
  bool is_max = true;
  bool global = false;    ///< one window, the whole image
  bool adaptive = false;  ///< `size` counts the outputs
  bool exclusive = true;  ///< averages of the pixels within the image alone

  static PoolRule Of(const OpView& op) {
    PoolRule rule;
    rule.window = WindowRule::Of(op, false);
    const std::vector<int64_t> size = op.Ints("ksize");
    std::copy_n(size.begin(), 2, rule.size.begin());
    rule.is_max = op.String("pooling_type") == "max";
    rule.global = op.Bool("global_pooling");
    rule.adaptive = op.Bool("adaptive");
    rule.exclusive = op.Bool("exclusive");
    rule.window.ceil_mode = op.Bool("ceil_mode");
    return rule;
  }
  int64_t OutSize(int axis, int64_t image) const {
    if (global) return 1;
    if (adaptive) return size[static_cast<size_t>(axis)];
    return window.OutSize(axis, image, size[static_cast<size_t>(axis)]);
  }
  Dims OutDims(const Dims& x) const {
    Dims out = x;
    for (int axis = 0; axis < 2; ++axis) {
      out.set(window.height_axis() + axis, OutSize(axis, x[window.height_axis() + axis]));
    }
    return out;
  }
};

/// One axis of a window: pixels [begin, end) of the image, and how many there are with the padding.
struct WindowSpan {
  int64_t begin, end, padded;

  WindowSpan(const PoolRule& rule, int axis, int64_t image, int64_t out, int64_t at) {
    const int64_t size = rule.size[static_cast<size_t>(axis)];
    if (rule.global) {
      begin = 0;
      end = padded = image;
      return;
    }
    if (rule.adaptive) {
      begin = at * image / out;
      end = ((at + 1) * image + out - 1) / out;
      padded = end - begin;
      return;
    }
    const int64_t pad = rule.window.PadBefore(axis, image, size);
    begin = at * rule.window.strides[static_cast<size_t>(axis)] - pad;
    end = std::min(begin + size, image + pad);
    padded = end - begin;
    begin = std::max<int64_t>(begin, 0);
    end = std::min(end, image);
  }
};

Status InferImagePool(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  const OpView& op = context.op();
  const std::string type = op.String("pooling_type");
  if (type != "max" && type != "avg") {
    return context.Error("pooling_type is \"" + type + "\"; supported are \"max\" and \"avg\"");
  }
  const std::vector<int64_t> size = op.Ints("ksize");
  if (size.size() != 2 || std::min(size[0], size[1]) < 1) {
    return context.Error("ksize must be two numbers of at least 1, for height and width; it is " + ShowAttr(size));
  }
  MR_TRY(WindowRule::Read(context, false).status());
  if (x.dims.rank() != 4) return context.Error("X " + x.dims.ToString() + " must be [images, channels, height, width]");
  const Dims out = PoolRule::Of(op).OutDims(x.dims);
  for (int axis = 0; axis < 4; ++axis) {
    if (out[axis] == 0) return context.Error("the window is larger than an image: X " + x.dims.ToString());
  }
  x.dims = out;
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// Calls body(first, step, window, to) for each window of each channel: pixel (i, j) of the window is at
/// first + (i * image width + j) * step, and `to` is its output.
template <class Body>
void ForEachWindow(const PoolRule& rule, const Dims& x, const Dims& out, const Body& body) {
  const int axis = rule.window.height_axis();
  const int64_t channels = x[rule.window.channel_axis()];
  const bool last = rule.window.channels_last();
  const int64_t step = last ? channels : 1;
  const int64_t in_pixels = x[axis] * x[axis + 1];
  const int64_t out_pixels = out[axis] * out[axis + 1];
  for (int64_t plane = 0; plane < x[0] * channels; ++plane) {
    const int64_t image = plane / channels;
    const int64_t channel = plane % channels;
    const int64_t from = last ? image * in_pixels * channels + channel : plane * in_pixels;
    const int64_t to = last ? image * out_pixels * channels + channel : plane * out_pixels;
    for (int64_t i = 0; i < out[axis]; ++i) {
      const WindowSpan rows(rule, 0, x[axis], out[axis], i);
      for (int64_t j = 0; j < out[axis + 1]; ++j) {
        const WindowSpan columns(rule, 1, x[axis + 1], out[axis + 1], j);
        body(from, step, rows, columns, to + (i * out[axis + 1] + j) * step);
      }
    }
  }
}

int64_t PixelsOf(const PoolRule& rule, const WindowSpan& rows, const WindowSpan& columns) {
  if (rule.exclusive || rule.adaptive) return (rows.end - rows.begin) * (columns.end - columns.begin);
  return rows.padded * columns.padded;
}

class PoolKernel : public BoundKernel<PoolKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    rule_ = PoolRule::Of(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_.dims();
    const Dims sizes = rule_.OutDims(dims);
    const int64_t width = dims[rule_.window.height_axis() + 1];
    const float* x = x_.Read();
    float* out = out_->Resize<float>(sizes);
    ForEachWindow(rule_, dims, sizes,
                  [&](int64_t from, int64_t step, const WindowSpan& rows, const WindowSpan& columns, int64_t to) {
                    float value = rule_.is_max ? -std::numeric_limits<float>::max() : 0;
                    for (int64_t i = rows.begin; i < rows.end; ++i) {
                      for (int64_t j = columns.begin; j < columns.end; ++j) {
                        const float pixel = x[from + (i * width + j) * step];
                        value = rule_.is_max ? LargerOrNan(value, pixel) : value + pixel;
                      }
                    }
                    out[to] = rule_.is_max ? value : value / static_cast<float>(PixelsOf(rule_, rows, columns));
                  });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  PoolRule rule_;
};

/// The first of the largest pixels gets the gradient of a window, NaN being larger than all, or all of them a part.
class PoolGradKernel : public BoundKernel<PoolGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, GradInput::Bind(context, "Out"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    rule_ = PoolRule::Of(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_.dims();
    const Dims sizes = rule_.OutDims(dims);
    MR_ASSIGN(const float* out, out_.Read(sizes.numel()));
    MR_ASSIGN(const float* grad, out_grad_.Read(sizes.numel()));
    const float* x = x_.Read();
    float* x_grad = ResizeLike(x_.tensor(), x_grad_);
    std::fill_n(x_grad, dims.numel(), 0.0F);
    const int64_t width = dims[rule_.window.height_axis() + 1];
    ForEachWindow(rule_, dims, sizes,
                  [&](int64_t from, int64_t step, const WindowSpan& rows, const WindowSpan& columns, int64_t to) {
                    const float part = grad[to] / static_cast<float>(rule_.is_max ? 1 : PixelsOf(rule_, rows, columns));
                    for (int64_t i = rows.begin; i < rows.end; ++i) {
                      for (int64_t j = columns.begin; j < columns.end; ++j) {
                        const int64_t at = from + (i * width + j) * step;
                        if (rule_.is_max && x[at] != out[to] && !std::isnan(x[at])) continue;
                        x_grad[at] += part;
                        if (rule_.is_max) return;
                      }
                    }
                  });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  GradInput out_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  PoolRule rule_;
};

void AddPoolAttrs(OpBuilder& op) {
  AddWindowAttrs(op, false);
  op.Attr("pooling_type", std::string("max"), "max or avg")
      .Attr("ksize", std::vector<int64_t>{1, 1}, "height and width of the window")
      .Attr("global_pooling", false, "the window is the whole image")
      .Attr("adaptive", false, "ksize says how many outputs there are")
      .Attr("exclusive", true, "averages leave the padding out")
      .Attr("ceil_mode", false, "a window that only begins within the image counts");
}

}  // namespace

void RegisterPool2d(OpRegistry& registry) {
  OpBuilder forward = registry.Add("pool2d");
  AddPoolAttrs(forward);
  forward.Apart()
      .Doc("The largest pixels of windows, or their averages.")
      .Input("X", "[images, channels, height, width]")
      .Output("Out", "[images, channels, height, width]")
      .InferShape(InferImagePool)
      .Grad({.inputs = {"X"}, .outputs = {"Out"}})
      .Kernel<PoolKernel>();
  registry.AddGradient("pool2d").Kernel<PoolGradKernel>();
}

}  // namespace millrace
