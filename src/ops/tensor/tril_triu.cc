#include <algorithm>

#include "ops/float_input.h"
#include "ops/kernel.h"
#include "ops/number_types.h"

namespace millrace {
namespace {

Status InferTriangle(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectNumbers(context, "X", x));
  if (x.dims.rank() < 2) return context.Error("X " + x.dims.ToString() + " is no matrix");
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// The gradient is the same triangle of the gradient.
class TriangleKernel : public BoundKernel<TriangleKernel> {
 public:
  Status Bind(KernelContext& context) {
    const bool backward = context.op().info().is_gradient;
    MR_ASSIGN(x_, FloatInput::Bind(context, backward ? "Out@GRAD" : "X"));
    MR_ASSIGN(out_, context.Output(backward ? "X@GRAD" : "Out"));
    // Beyond every matrix, so that no difference overflows.
    constexpr int64_t kFar = int64_t{1} << 60;
    diagonal_ = std::clamp(context.op().Int("diagonal"), -kFar, kFar);
    lower_ = context.op().Bool("lower");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_.dims();
    if (dims.rank() < 2) return InvalidConfig(Shown(x_.name(), dims) + " is no matrix");
    const int64_t rows = dims[-2];
    const int64_t columns = dims[-1];
    const int64_t count = dims.numel();
    WithNumber(x_.tensor().dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = ReadNumbers<T>(x_);
      T* out = ResizeLikeIn<T>(x_.tensor(), out_);
      for (int64_t at = 0; at < count; ++at) {
        const int64_t beyond = at % columns - at / columns % rows - diagonal_;
        out[at] = (lower_ ? beyond <= 0 : beyond >= 0) ? x[at] : T{};
      }
    });
    return Status::Ok();
  }

 private:
  FloatInput x_;
  Tensor* out_ = nullptr;
  int64_t diagonal_ = 0;
  bool lower_ = false;
};

}  // namespace

void RegisterTrilTriu(OpRegistry& registry) {
  registry.Add("tril_triu")
      .Doc("A triangle of each matrix of X, zeros elsewhere.")
      .Input("X", "float32, int64 or int32 [..., rows, columns]")
      .Output("Out", "shape of X")
      .Attr("diagonal", int64_t{0}, "the diagonal that is its edge; above 0: to the right of the main one")
      .Attr("lower", false, "what is below stays, not what is above")
      .InferShape(InferTriangle)
      .Grad(GradArgs{})
      .Kernel<TriangleKernel>();
  registry.AddGradient("tril_triu").Kernel<TriangleKernel>();
}

}  // namespace millrace
