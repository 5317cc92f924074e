#include <algorithm>

#include "kernels/not_a_number.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

enum class SlopeMode : uint8_t { kAll, kSecondAxis, kLastAxis, kElement };

SlopeMode SlopeModeOf(const OpView& op) {
  const std::string mode = op.String("mode");
  if (mode == "all") return SlopeMode::kAll;
  if (mode == "element") return SlopeMode::kElement;
  return op.String("data_format") == "NHWC" ? SlopeMode::kLastAxis : SlopeMode::kSecondAxis;
}

/// Which slope a value has: that of its place (at / inner) % count.
struct SlopePlaces {
  int64_t inner = 1;
  int64_t count = 1;

  static SlopePlaces Of(SlopeMode mode, const Dims& dims) {
    if (mode == SlopeMode::kAll || dims.rank() < 2) return {};
    if (mode == SlopeMode::kElement) return {1, dims.Product(1, dims.rank())};
    if (mode == SlopeMode::kLastAxis) return {1, dims[dims.rank() - 1]};
    return {dims.Product(2, dims.rank()), dims[1]};
  }
  int64_t operator[](int64_t at) const { return count == 1 ? 0 : at / inner % count; }
};

Status InferPrelu(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta alpha, context.Input("Alpha"));
  MR_TRY(ExpectFloats(context, {"X", "Alpha"}));
  const std::string mode = context.op().String("mode");
  if (mode != "all" && mode != "channel" && mode != "element") {
    return context.Error("mode is \"" + mode + "\"; supported are \"all\", \"channel\" and \"element\"");
  }
  const SlopeMode slopes = SlopeModeOf(context.op());
  int64_t wanted = 1;
  if (x.dims.rank() > 1 && slopes == SlopeMode::kSecondAxis) wanted = x.dims[1];
  if (x.dims.rank() > 1 && slopes == SlopeMode::kLastAxis) wanted = x.dims[x.dims.rank() - 1];
  if (x.dims.rank() > 1 && slopes == SlopeMode::kElement) wanted = KnownProduct(x.dims, 1, x.dims.rank());
  if (!MayEqual(wanted, KnownProduct(alpha.dims, 0, alpha.dims.rank()))) {
    return context.Error("Alpha " + alpha.dims.ToString() + " must hold " + std::to_string(wanted) + " slopes for X " +
                         x.dims.ToString() + " in mode \"" + mode + "\"");
  }
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// Forward without Out@GRAD, backward with it.
class PreluKernel : public BoundKernel<PreluKernel> {
 public:
  Status Bind(KernelContext& context) {
    mode_ = SlopeModeOf(context.op());
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(alpha_, FloatInput::Bind(context, "Alpha"));
    MR_ASSIGN(out_grad_, GradInput::BindOptional(context, "Out@GRAD"));
    if (!out_grad_.bound()) {
      MR_ASSIGN(out_, context.Output("Out"));
      return Status::Ok();
    }
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(alpha_grad_, context.OptionalOutput("Alpha@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const SlopePlaces places = SlopePlaces::Of(mode_, x_.dims());
    if (alpha_.tensor().numel() != places.count) {
      return BadData("Alpha " + alpha_.dims().ToString() + " must hold " + std::to_string(places.count) +
                     " slopes for X " + x_.dims().ToString());
    }
    const float* x = x_.Read();
    const float* alpha = alpha_.Read();
    const int64_t count = x_.tensor().numel();
    if (!out_grad_.bound()) {
      float* out = ResizeLike(x_.tensor(), out_);
      for (int64_t i = 0; i < count; ++i) out[i] = x[i] > 0 ? x[i] : alpha[places[i]] * x[i];
      return Status::Ok();
    }
    MR_ASSIGN(const float* grad, out_grad_.Read(count));
    if (alpha_grad_ != nullptr) SumSlopes(places, x, grad, count);
    if (x_grad_ != nullptr) {
      float* x_grad = ResizeLike(x_.tensor(), x_grad_);
      for (int64_t i = 0; i < count; ++i) x_grad[i] = x[i] > 0 ? grad[i] : alpha[places[i]] * grad[i] + ZeroOrNan(x[i]);
    }
    return Status::Ok();
  }

 private:
  void SumSlopes(const SlopePlaces& places, const float* x, const float* grad, int64_t count) {
    float* sums = ResizeLike(alpha_.tensor(), alpha_grad_);
    std::fill_n(sums, places.count, 0.0F);
    for (int64_t i = 0; i < count; ++i) {
      if (!(x[i] > 0)) sums[places[i]] += x[i] * grad[i];
    }
  }

  SlopeMode mode_ = SlopeMode::kAll;
  FloatInput x_;
  FloatInput alpha_;
  GradInput out_grad_;
  Tensor* out_ = nullptr;
  Tensor* x_grad_ = nullptr;
  Tensor* alpha_grad_ = nullptr;
};

}  // namespace

void RegisterPrelu(OpRegistry& registry) {
  registry.Add("prelu")
      .Doc("Out = X, times a slope that is learned where it is negative.")
      .Input("X", "any shape")
      .Input("Alpha", "the slopes")
      .Output("Out", "shape of X")
      .Attr("mode", std::string("all"), "all: one slope; channel: one for each of axis 1; element: one for each value")
      .Attr("data_format", std::string("NCHW"), "NHWC: the channels are the last axis")
      .InferShape(InferPrelu)
      .Grad({.inputs = {"X", "Alpha"}, .to = {"X", "Alpha"}})
      .Kernel<PreluKernel>();
  registry.AddGradient("prelu").Kernel<PreluKernel>();
}

}  // namespace millrace
