#include <cmath>

#include "core/numbers.h"
#include "ops/kernel.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

Status InferIncrement(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  if (x.dims.numel() != 1) {
    return context.Error("X " + Shown(InputArguments(context.op().desc(), "X")[0], x.dims) + " must hold one value");
  }
  const float step = context.op().Float("step");
  if (x.dtype != DType::kFloat32 && x.dtype != DType::kFloat64 && step != std::nearbyint(step)) {
    return context.Error("step " + ShortestNumber(step) + " is no whole number, and X is " +
                         std::string(DTypeName(x.dtype)) + ": a loop that counts with it would not end");
  }
  context.SetOutput("Out", x);
  return Status::Ok();
}

class IncrementKernel : public BoundKernel<IncrementKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    step_ = context.op().Float("step");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    WithType(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T value = *x_->data<T>();
      const Dims dims = x_->dims();
      *out_->Resize<T>(dims) = static_cast<T>(value + static_cast<T>(step_));
    });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  float step_ = 1;
};

}  // namespace

void RegisterIncrement(OpRegistry& registry) {
  registry.Add("increment")
      .Doc("Out = X + step; X holds one number.")
      .Input("X", "[1]")
      .Output("Out", "[1], may be X")
      .Attr("step", 1.0F, "what is added")
      .InferShape(InferIncrement)
      .Kernel<IncrementKernel>();
}

}  // namespace millrace
