#include <functional>

#include "ops/kernel.h"
#include "ops/math/broadcast.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

constexpr const char* kCompareAxis = "where the smaller one's axes begin; -1: they end together";

Status InferCompare(InferShapeContext& context) {
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

Status InferLogical(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kBool));
  return InferCompare(context);
}

/// Out[i] = Relation()(X[i], Y[i]).
template <class Relation>
class CompareKernel : public BoundKernel<CompareKernel<Relation>> {
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
    const void* x_data = x_->raw_data();
    const void* y_data = y_->raw_data();
    const DType type = x_->dtype();
    // Out may be X or Y where all of them are bool: values are then read before they are written.
    bool* out = out_->Resize<bool>(walk.out);
    WithType(type, [&](auto sample) {
      using T = decltype(sample);
      const T* x = static_cast<const T*>(x_data);
      const T* y = static_cast<const T*>(y_data);
      walk.ForEachRun([&](int64_t xi, int64_t yi, int64_t oi, int64_t n, int64_t xs, int64_t ys) {
        for (int64_t i = 0; i < n; ++i) out[oi + i] = Relation()(x[xi + i * xs], y[yi + i * ys]);
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

class NotKernel : public BoundKernel<NotKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const bool* x = x_->data<bool>();
    const int64_t count = x_->numel();
    bool* out = out_->Resize<bool>(x_->dims());
    for (int64_t i = 0; i < count; ++i) out[i] = !x[i];
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
};

Status InferNot(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kBool));
  context.SetOutput("Out", x);
  return Status::Ok();
}

template <class Relation>
void RegisterRelation(OpRegistry& registry, const std::string& type, const std::string& sign) {
  registry.Add(type)
      .Doc("Out = X " + sign + " Y; the smaller one is repeated.")
      .Input("X", "any shape")
      .Input("Y", "of the same type")
      .Output("Out", "bool, the larger shape")
      .Attr("axis", int64_t{-1}, kCompareAxis)
      .Attr("force_cpu", true, "as Paddle writes it; changes nothing here")
      .InferShape(InferCompare)
      .Kernel<CompareKernel<Relation>>();
}

template <class Relation>
void RegisterLogical(OpRegistry& registry, const std::string& type, const std::string& word) {
  registry.Add(type)
      .Doc("Out = X " + word + " Y; the smaller one is repeated.")
      .Input("X", "bool, any shape")
      .Input("Y", "bool")
      .Output("Out", "bool, the larger shape")
      .Attr("axis", int64_t{-1}, kCompareAxis)
      .InferShape(InferLogical)
      .Kernel<CompareKernel<Relation>>();
}

}  // namespace

void RegisterCompare(OpRegistry& registry) {
  RegisterRelation<std::less<>>(registry, "less_than", "<");
  RegisterRelation<std::less_equal<>>(registry, "less_equal", "<=");
  RegisterRelation<std::greater<>>(registry, "greater_than", ">");
  RegisterRelation<std::greater_equal<>>(registry, "greater_equal", ">=");
  RegisterRelation<std::equal_to<>>(registry, "equal", "==");
  RegisterRelation<std::not_equal_to<>>(registry, "not_equal", "!=");
  RegisterLogical<std::logical_and<>>(registry, "logical_and", "and");
  RegisterLogical<std::logical_or<>>(registry, "logical_or", "or");
  RegisterLogical<std::not_equal_to<>>(registry, "logical_xor", "exclusive or");
  registry.Add("logical_not")
      .Doc("Out = not X.")
      .Input("X", "bool, any shape")
      .Output("Out", "shape of X")
      .InferShape(InferNot)
      .Kernel<NotKernel>();
}

}  // namespace millrace
