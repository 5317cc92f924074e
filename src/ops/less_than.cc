#include "ops/broadcast.h"
#include "ops/kernel.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

Status InferLessThan(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta y, context.Input("Y"));
  MR_TRY(ExpectDType(context, "Y", y, x.dtype));
  const auto walk = Broadcast::Create(x.dims, y.dims, context.op().Int("axis"));
  if (!walk.ok()) return context.Error(walk.status().message());
  VarMeta out = x;
  out.dims = walk->out;
  out.dtype = DType::kBool;
  context.SetOutput("Out", out);
  return Status::Ok();
}

class LessThanKernel : public BoundKernel<LessThanKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.Input("Y"));
    MR_ASSIGN(out_, context.Output("Out"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const Broadcast walk, Broadcast::Create(x_->dims(), y_->dims(), axis_));
    bool* out = out_->Resize<bool>(walk.out);
    WithType(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = x_->data<T>();
      const T* y = y_->data<T>();
      walk.ForEachRun([&](int64_t xi, int64_t yi, int64_t oi, int64_t n, int64_t xs, int64_t ys) {
        for (int64_t i = 0; i < n; ++i) out[oi + i] = x[xi + i * xs] < y[yi + i * ys];
      });
    });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* y_ = nullptr;
  Tensor* out_ = nullptr;
  int64_t axis_ = -1;
};

}  // namespace

void RegisterLessThan(OpRegistry& registry) {
  registry.Add("less_than")
      .Doc("Out = X < Y; the smaller one is repeated.")
      .Input("X", "any shape")
      .Input("Y", "of the same type")
      .Output("Out", "bool, the larger shape")
      .Attr("axis", int64_t{-1}, "where the smaller one's axes begin; -1: they end together")
      .Attr("force_cpu", true, "as Paddle writes it; changes nothing here")
      .InferShape(InferLessThan)
      .Kernel<LessThanKernel>();
}

}  // namespace millrace
