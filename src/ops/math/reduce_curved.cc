#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/float_input.h"
#include "ops/math/slope_grad.h"

namespace millrace {
namespace {

// Reductions that are a curved function of a sum: the slope by a value is found from it and from the result.

struct RootOfSquares {
  static constexpr bool kFromLargest = false;
  static double Term(double x, double) { return x * x; }
  static double Result(double sum, double) { return std::sqrt(sum); }
  /// A norm of 0 has no slope; 0 is what Paddle gives.
  static float Slope(float x, float out) { return out == 0 ? 0 : x / out; }
};

struct LogOfExponentials {
  static constexpr bool kFromLargest = true;
  static double Term(double x, double largest) { return std::exp(x - largest); }
  static double Result(double sum, double largest) { return std::log(sum) + largest; }
  static float Slope(float x, float out) { return std::exp(x - out); }
};

Status InferCurved(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  return InferReduction(context, Reduction::Of(context.op()));
}

template <class F>
class CurvedKernel : public BoundKernel<CurvedKernel<F>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    reduction_ = Reduction::Of(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const float* x = x_.Read();
    const Dims dims = reduction_.OutDims(x_.dims());
    const auto count = static_cast<size_t>(dims.numel());
    const ReductionWalk walk(x_.dims(), reduction_);
    largest_.assign(count, F::kFromLargest ? -std::numeric_limits<double>::infinity() : 0.0);
    sums_.assign(count, 0.0);
    if constexpr (F::kFromLargest) {
      ForEach(walk, [&](int64_t at, size_t to) { largest_[to] = std::max(largest_[to], static_cast<double>(x[at])); });
      // Of no finite value there is nothing to be taken off.
      for (double& value : largest_) value = std::isfinite(value) ? value : 0;
    }
    ForEach(walk, [&](int64_t at, size_t to) { sums_[to] += F::Term(static_cast<double>(x[at]), largest_[to]); });
    const std::span<const uint32_t> lod = x_.tensor().lod();
    const bool keeps_rows = !reduction_.Drops(0, x_.dims().rank());
    float* out = out_->template Resize<float>(dims);
    if (keeps_rows) out_->set_lod(lod);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(F::Result(sums_[i], largest_[i]));
    return Status::Ok();
  }

 private:
  template <class Body>
  static void ForEach(const ReductionWalk& walk, const Body& body) {
    walk.ForEachRun([&](int64_t at, int64_t width, int64_t to, int64_t stride) {
      for (int64_t i = 0; i < width; ++i) body(at + i, static_cast<size_t>(to + i * stride));
    });
  }

  FloatInput x_;
  Tensor* out_ = nullptr;
  Reduction reduction_;
  std::vector<double> largest_;
  std::vector<double> sums_;
};

void AddLogSumExpAttrs(OpBuilder& op) {
  op.Attr("axis", std::vector<int64_t>{0}, "axes to reduce, negative from the end; none: all")
      .Attr("keepdim", false, "reduced axes stay, of size 1")
      .Attr("reduce_all", false, "reduces every axis");
}

template <class F>
void RegisterCurved(OpRegistry& registry, const std::string& type, const std::string& doc, void (*attrs)(OpBuilder&)) {
  OpBuilder forward = registry.Add(type);
  attrs(forward);
  forward.Doc(doc)
      .Input("X", "any shape")
      .Output("Out", "without the reduced axes; [1] when none is left")
      .InferShape(InferCurved)
      .Grad({.inputs = {"X"}, .outputs = {"Out"}})
      .template Kernel<CurvedKernel<F>>();
  registry.AddGradient(type).template Kernel<SlopeGradKernel<F>>();
}

}  // namespace

void RegisterReduceCurved(OpRegistry& registry) {
  RegisterCurved<RootOfSquares>(registry, "frobenius_norm", "The root of the sum of squares along axes.",
                                AddReductionAttrs);
  RegisterCurved<LogOfExponentials>(registry, "logsumexp", "The logarithm of the sum of exponentials along axes.",
                                    AddLogSumExpAttrs);
}

}  // namespace millrace
