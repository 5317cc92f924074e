#include <algorithm>
#include <memory>

#include "kernels/gemm.h"
#include "ops/float_input.h"
#include "ops/forward_product.h"
#include "ops/grad_input.h"
#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

/// Rows that a window may be long or away.
constexpr int64_t kFarthest = 1 << 20;

Status InferSequenceConv(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta filter, context.Input("Filter"));
  MR_TRY(ExpectFloats(context, {"X", "Filter"}));
  MR_TRY(ExpectSequences(context, "X", x));
  const int64_t length = context.op().Int("contextLength");
  if (length < 1 || length > kFarthest) {
    return context.Error("contextLength is " + std::to_string(length) + "; it must be from 1 to " +
                         std::to_string(kFarthest));
  }
  if (x.dims.rank() != 2 || filter.dims.rank() != 2 ||
      !MayEqual(filter.dims[0], x.dims[1] < 0 ? -1 : x.dims[1] * length)) {
    return context.Error("Filter " + filter.dims.ToString() + " must be [" + std::to_string(length) +
                         " * columns, units] for X " + x.dims.ToString());
  }
  x.dims.set(1, filter.dims[1]);
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// Where each row's window lies: rows from `start` on, `length` of them, those outside of the sequence being 0.
struct SequenceWindow {
  int64_t start = 0;
  int64_t length = 1;

  static SequenceWindow Of(const OpView& op) {
    const auto near = [&](const char* name) { return std::clamp<int64_t>(op.Int(name), -kFarthest, kFarthest); };
    return {near("contextStart"), near("contextLength")};
  }
  /// Calls body(row, place in the window, the row that stands there) for all that lie within a sequence.
  template <class Body>
  void ForEach(std::span<const uint32_t> lod, const Body& body) const {
    for (size_t s = 0; s + 1 < lod.size(); ++s) {
      const int64_t first = lod[s];
      const int64_t end = lod[s + 1];
      for (int64_t row = first; row < end; ++row) {
        for (int64_t k = std::max<int64_t>(0, first - row - start); k < std::min(length, end - row - start); ++k) {
          body(row, k, row + start + k);
        }
      }
    }
  }
};

/// Each row's window in a row of its own; its product with the filter is the convolution.
class WindowRows {
 public:
  const float* Make(const Tensor& x, const SequenceWindow& window) {
    const int64_t width = RowWidth(x);
    const float* from = x.data<float>();
    const int64_t row_width = width * window.length;
    float* rows = rows_.Resize<float>({x.dims()[0], row_width});
    std::fill_n(rows, x.dims()[0] * row_width, 0.0F);
    window.ForEach(x.lod(), [&](int64_t row, int64_t k, int64_t source) {
      std::copy_n(from + source * width, width, rows + row * row_width + k * width);
    });
    return rows;
  }

 private:
  Tensor rows_;
};

Status CheckFilter(const std::string& name, const Tensor& x, const FloatInput& filter, const SequenceWindow& window) {
  MR_TRY(CheckSequences(name, x));
  if (filter.dims().rank() == 2 && filter.dims()[0] == RowWidth(x) * window.length) return Status::Ok();
  return BadData(Shown(name, x.dims()) + " does not fit the filter " + Shown(filter.name(), filter.dims()));
}

class SequenceConvKernel : public BoundKernel<SequenceConvKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(filter_, FloatInput::Bind(context, "Filter"));
    MR_ASSIGN(out_, context.Output("Out"));
    window_ = SequenceWindow::Of(context.op());
    name_ = context.InputName("X");
    product_ = std::make_unique<Gemm>(ForwardProduct(context, "Filter", {}));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckFilter(name_, *x_, filter_, window_));
    const int64_t rows = x_->dims()[0];
    const int64_t units = filter_.dims()[1];
    const float* windows = windows_.Make(*x_, window_);
    float* out = out_->Resize<float>({rows, units});
    out_->set_lod(x_->lod());
    return product_->Run(rows, units, filter_.dims()[0], windows, filter_.ReadInPlace(), nullptr, out);
  }

 private:
  const Tensor* x_ = nullptr;
  FloatInput filter_;
  Tensor* out_ = nullptr;
  SequenceWindow window_;
  WindowRows windows_;
  std::unique_ptr<Gemm> product_;
  std::string name_;
};

class SequenceConvGradKernel : public BoundKernel<SequenceConvGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(filter_, FloatInput::Bind(context, "Filter"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(filter_grad_, context.OptionalOutput("Filter@GRAD"));
    window_ = SequenceWindow::Of(context.op());
    name_ = context.InputName("X");
    to_windows_ = std::make_unique<Gemm>(GemmSpec{.transpose_b = true, .bf16 = context.options().bf16});
    to_filter_ = std::make_unique<Gemm>(GemmSpec{.transpose_a = true, .bf16 = context.options().bf16});
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckFilter(name_, *x_, filter_, window_));
    const int64_t rows = x_->dims()[0];
    const int64_t units = filter_.dims()[1];
    const int64_t row_width = filter_.dims()[0];
    const int64_t width = RowWidth(*x_);
    MR_ASSIGN(const float* grad, out_grad_.Read(rows * units));
    if (filter_grad_ != nullptr) {
      const float* windows = windows_.Make(*x_, window_);
      MR_TRY(
          to_filter_->Run(row_width, units, rows, windows, grad, nullptr, filter_grad_->Resize<float>(filter_.dims())));
    }
    if (x_grad_ == nullptr) return Status::Ok();
    float* parts = parts_.Resize<float>({rows, row_width});
    MR_TRY(to_windows_->Run(rows, row_width, units, grad, filter_.ReadInPlace(), nullptr, parts));
    float* x_grad = ResizeLike(*x_, x_grad_);
    std::fill_n(x_grad, x_->numel(), 0.0F);
    window_.ForEach(x_->lod(), [&](int64_t row, int64_t k, int64_t source) {
      const float* part = parts + row * row_width + k * width;
      for (int64_t j = 0; j < width; ++j) x_grad[source * width + j] += part[j];
    });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  FloatInput filter_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* filter_grad_ = nullptr;
  SequenceWindow window_;
  WindowRows windows_;
  Tensor parts_;
  std::unique_ptr<Gemm> to_windows_;
  std::unique_ptr<Gemm> to_filter_;
  std::string name_;
};

}  // namespace

void RegisterSequenceConv(OpRegistry& registry) {
  registry.Add("sequence_conv")
      .Apart()
      .Doc("Each row with its neighbours in its sequence, times Filter; outside of the sequence there are zeros.")
      .Input("X", "[values, columns] with LoD")
      .Input("Filter", "[contextLength * columns, units]")
      .Output("Out", "[values, units] with LoD")
      .Attr("contextLength", int64_t{1}, "rows that a window has")
      .Attr("contextStart", int64_t{0}, "its first row, counted from the row that it belongs to")
      .Fixed("contextStride", int64_t{1}, "rows from one window to the next")
      .Fixed("paddingTrainable", false, "learns what stands outside of a sequence, which is 0")
      .InferShape(InferSequenceConv)
      .Grad({.inputs = {"X", "Filter"}, .to = {"X", "Filter"}})
      .Kernel<SequenceConvKernel>();
  registry.AddGradient("sequence_conv").Kernel<SequenceConvGradKernel>();
}

}  // namespace millrace
