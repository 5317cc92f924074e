#include <algorithm>

#include "ops/kernel.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

Status InferCast(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(x.dtype, ReadDTypeAttr(context.op(), "out_dtype"));
  context.SetOutput("Out", x);
  return Status::Ok();
}

class CastKernel : public BoundKernel<CastKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(type_, ReadDTypeAttr(context.op(), "out_dtype"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_->dims();
    const std::span<const uint32_t> lod = x_->lod();
    const int64_t count = dims.numel();
    WithType(x_->dtype(), [&](auto from) {
      const auto* x = x_->data<decltype(from)>();
      WithType(type_, [&](auto to) {
        auto* out = out_->Resize<decltype(to)>(dims);
        for (int64_t i = 0; i < count; ++i) out[i] = ConvertValue<decltype(to)>(x[i]);
      });
    });
    out_->set_lod(lod);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  DType type_ = DType::kFloat32;
};

/// The gradient is cast back.
std::vector<OpDesc> CastGrad(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("X")) return {};
  const OpDesc names = context.GradOp({}, {}, {"Out"}, {"X"});
  OpDesc grad;
  grad.set_type("cast");
  SetAttr(grad, "in_dtype", context.op().Int("out_dtype"));
  SetAttr(grad, "out_dtype", context.op().Int("in_dtype"));
  SetInput(grad, "X", InputArguments(names, "Out@GRAD"));
  SetOutput(grad, "Out", OutputArguments(names, "X@GRAD"));
  return {grad};
}

}  // namespace

void RegisterCast(OpRegistry& registry) {
  registry.Add("cast")
      .Doc("Out = X as another type; beyond an integer's range its bounds.")
      .Input("X", "any shape")
      .Output("Out", "shape of X")
      .Attr("in_dtype", int64_t{VarType::FP32}, "type of X, a VarType number")
      .Attr("out_dtype", int64_t{VarType::FP32}, "type of Out, a VarType number")
      .InferShape(InferCast)
      .Grad(CastGrad)
      .Kernel<CastKernel>();
}

}  // namespace millrace
