#include <algorithm>
#include <functional>
#include <limits>
#include <type_traits>

#include "kernels/not_a_number.h"
#include "ops/float_input.h"
#include "ops/math/slope_grad.h"

namespace millrace {
namespace {

// Reductions by another rule than a sum: F has the value that an empty set gives, joins two values, and knows the
// slope of the result by one of its values.

struct MaxOf {
  template <class T>
  static constexpr T Empty() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : -std::numeric_limits<T>::infinity();
  }
  template <class T>
  static T Join(T a, T b) {
    return LargerOrNan(a, b);
  }
  static float Slope(float x, float out) { return x == out ? 1.0F : ZeroOrNan(out); }
};
struct MinOf {
  template <class T>
  static constexpr T Empty() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
  }
  template <class T>
  static T Join(T a, T b) {
    return SmallerOrNan(a, b);
  }
  static float Slope(float x, float out) { return x == out ? 1.0F : ZeroOrNan(out); }
};
struct ProductOf {
  template <class T>
  static constexpr T Empty() {
    return 1;
  }
  template <class T>
  static T Join(T a, T b) {
    return a * b;
  }
  static float Slope(float x, float out) { return out / x; }
};

Status InferNumber(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  if (x.dtype != DType::kInt64 && x.dtype != DType::kInt32) MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  return InferReduction(context, Reduction::Of(context.op()));
}

Status InferBool(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kBool));
  return InferReduction(context, Reduction::Of(context.op()));
}

/// out = the values of x that meet there, joined one after another to `empty`.
template <class T, class Join>
void JoinValues(const T* x, const Dims& dims, const Reduction& reduction, T empty, const Join& join, T* out) {
  std::fill_n(out, reduction.OutDims(dims).numel(), empty);
  ReductionWalk(dims, reduction).ForEachRun([&](int64_t at, int64_t width, int64_t to, int64_t stride) {
    for (int64_t i = 0; i < width; ++i) out[to + i * stride] = join(out[to + i * stride], x[at + i]);
  });
}

template <class F>
class ExtremeKernel : public BoundKernel<ExtremeKernel<F>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(out_, context.Output("Out"));
    reduction_ = Reduction::Of(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    switch (x_.tensor().dtype()) {
      case DType::kInt64: Join(x_.tensor().template data<int64_t>()); break;
      case DType::kInt32: Join(x_.tensor().template data<int32_t>()); break;
      default: Join(x_.Read());
    }
    return Status::Ok();
  }

 private:
  template <class T>
  void Join(const T* x) {
    const Dims dims = x_.dims();
    T* out = out_->template Resize<T>(reduction_.OutDims(dims));
    JoinValues(x, dims, reduction_, F::template Empty<T>(), F::template Join<T>, out);
  }

  FloatInput x_;
  Tensor* out_ = nullptr;
  Reduction reduction_;
};

class BoolKernel : public BoundKernel<BoolKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    reduction_ = Reduction::Of(context.op());
    all_ = context.op().type() == "reduce_all";
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_->dims();
    bool* out = out_->Resize<bool>(reduction_.OutDims(dims));
    if (all_) JoinValues(x_->data<bool>(), dims, reduction_, true, std::logical_and<>(), out);
    if (!all_) JoinValues(x_->data<bool>(), dims, reduction_, false, std::logical_or<>(), out);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  Reduction reduction_;
  bool all_ = false;
};

template <class F>
void RegisterOne(OpRegistry& registry, const std::string& type, const std::string& doc) {
  OpBuilder forward = registry.Add(type);
  AddReductionAttrs(forward);
  forward.Doc(doc)
      .Input("X", "any shape, whole numbers too")
      .Output("Out", "of X's type, without the reduced axes; [1] when none is left")
      .InferShape(InferNumber)
      .Grad({.inputs = {"X"}, .outputs = {"Out"}})
      .template Kernel<ExtremeKernel<F>>();
  registry.AddGradient(type).template Kernel<SlopeGradKernel<F>>();
}

void RegisterBool(OpRegistry& registry, const std::string& type, const std::string& doc) {
  OpBuilder op = registry.Add(type);
  AddReductionAttrs(op);
  op.Doc(doc)
      .Input("X", "bool, any shape")
      .Output("Out", "bool, without the reduced axes; [1] when none is left")
      .InferShape(InferBool)
      .Kernel<BoolKernel>();
}

}  // namespace

void RegisterReduceExtreme(OpRegistry& registry) {
  RegisterOne<MaxOf>(registry, "reduce_max", "The largest values along axes; each that is as large gets the gradient.");
  RegisterOne<MinOf>(registry, "reduce_min",
                     "The smallest values along axes; each that is as small gets the gradient.");
  RegisterOne<ProductOf>(registry, "reduce_prod", "Products along axes.");
  RegisterBool(registry, "reduce_all", "True where all values along axes are.");
  RegisterBool(registry, "reduce_any", "True where any value along axes is.");
}

}  // namespace millrace
