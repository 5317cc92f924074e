#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "kernels/not_a_number.h"
#include "ops/cleared_like.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"
#include "ops/math/broadcast.h"
#include "ops/sparse_gradient.h"

namespace millrace {
namespace {

/// The smallest number's is itself: the division of it by -1 is no number's.
template <class T>
T Negated(T x) {
  return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
}

struct Add {
  template <class T>
  static T Forward(T x, T y) {
    return x + y;
  }
  static float GradX(float, float, float grad) { return grad; }
  static float GradY(float, float, float grad) { return grad; }
};

struct Sub {
  template <class T>
  static T Forward(T x, T y) {
    return x - y;
  }
  static float GradX(float, float, float grad) { return grad; }
  static float GradY(float, float, float grad) { return -grad; }
};

struct Mul {
  template <class T>
  static T Forward(T x, T y) {
    return x * y;
  }
  static float GradX(float, float y, float grad) { return grad * y; }
  static float GradY(float x, float, float grad) { return grad * x; }
};

/// A whole Y without 0 (CheckDivisors), as for Mod and FloorDiv.
struct Div {
  static constexpr bool kDivides = true;
  template <class T>
  static T Forward(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      if (y == -1) return Negated(x);
    }
    return x / y;
  }
  static float GradX(float, float y, float grad) { return grad / y; }
  static float GradY(float x, float y, float grad) { return -grad * x / (y * y); }
};

/// 0; NaN where either value is.
float NoneOrNan(float x, float y) { return ZeroOrNan(std::isnan(x) ? x : y); }

struct Max {
  template <class T>
  static T Forward(T x, T y) {
    return LargerOrNan(x, y);
  }
  static float GradX(float x, float y, float grad) { return x > y ? grad : NoneOrNan(x, y); }
  static float GradY(float x, float y, float grad) { return x > y ? 0 : grad + NoneOrNan(x, y); }
};

struct Min {
  template <class T>
  static T Forward(T x, T y) {
    return SmallerOrNan(x, y);
  }
  static float GradX(float x, float y, float grad) { return x < y ? grad : NoneOrNan(x, y); }
  static float GradY(float x, float y, float grad) { return x < y ? 0 : grad + NoneOrNan(x, y); }
};

struct Pow {
  template <class T>
  static T Forward(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::llrint(std::pow(static_cast<double>(x), static_cast<double>(y))));
    } else {
      return std::pow(x, y);
    }
  }
  static float GradX(float x, float y, float grad) { return grad * y * std::pow(x, y - 1); }
  static float GradY(float x, float y, float grad) { return grad * std::log(x) * std::pow(x, y); }
};

/// Of Y's sign, as in Python.
struct Mod {
  static constexpr bool kDivides = true;
  template <class T>
  static T Forward(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      if (y == -1) return 0;
      const T rest = x % y;
      return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
    } else {
      const T rest = std::fmod(x, y);
      return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
    }
  }
};

/// Rounds down, as in Python.
struct FloorDiv {
  static constexpr bool kDivides = true;
  template <class T>
  static T Forward(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      if (y == -1) return Negated(x);
      const T whole = x / y;
      return x % y != 0 && (x < 0) != (y < 0) ? whole - 1 : whole;
    } else {
      return std::floor(x / y);
    }
  }
};

/// Whether F is a division, for which no whole number has a value when Y is 0.
template <class F, class = void>
inline constexpr bool kDivides = false;
template <class F>
inline constexpr bool kDivides<F, std::enable_if_t<F::kDivides>> = true;

/// kBadData that says which value of Y is 0.
template <class T>
Status CheckDivisors(const Tensor& y, const std::string& name) {
  const T* values = y.data<T>();
  const T* zero = std::find(values, values + y.numel(), T{0});
  if (zero == values + y.numel()) return Status::Ok();
  const int64_t columns = y.dims().rank() > 1 ? y.numel() / y.dims()[0] : 1;
  return BadData("\"" + name + "\" " + y.dims().ToString() + " is 0 in row " +
                 std::to_string((zero - values) / columns) + ", value " + std::to_string((zero - values) % columns) +
                 " (both from 0): " +
                 "no whole number is divided by 0; divide by elementwise_max of it and 1, or cast both to float32");
}

template <class F, class T>
void Compute(const Broadcast& walk, const T* x, const T* y, T* out) {
  walk.ForEachRun([&](int64_t xi, int64_t yi, int64_t oi, int64_t n, int64_t x_stride, int64_t y_stride) {
    const T* a = x + xi;
    const T* b = y + yi;
    T* o = out + oi;
    if (x_stride == 1 && y_stride == 1) {
      for (int64_t i = 0; i < n; ++i) o[i] = F::Forward(a[i], b[i]);
    } else if (y_stride == 0 && x_stride == 1) {
      const T right = *b;
      for (int64_t i = 0; i < n; ++i) o[i] = F::Forward(a[i], right);
    } else {
      for (int64_t i = 0; i < n; ++i) o[i] = F::Forward(a[i * x_stride], b[i * y_stride]);
    }
  });
}

template <class F>
class ElementwiseKernel : public BoundKernel<ElementwiseKernel<F>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(y_, FloatInput::Bind(context, "Y"));
    MR_ASSIGN(out_, context.Output("Out"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    auto made = Broadcast::Create(x_.dims(), y_.dims(), axis_);
    if (!made.ok()) return std::move(made).Context(x_.name() + ", " + y_.name()).status();
    const Broadcast& walk = *made;
    for (const FloatInput* operand : {&x_, &y_}) {
      // What is repeated would be read on after Out has taken its place.
      if (&operand->tensor() != out_ || operand->tensor().numel() == walk.out.numel()) continue;
      return InvalidConfig("\"" + operand->name() + "\" " + operand->tensor().dims().ToString() +
                           " is repeated, and Out is to take its place; write another variable, and assign it");
    }
    const std::span<const uint32_t> lod = x_.tensor().has_lod() ? x_.tensor().lod() : y_.tensor().lod();
    switch (x_.tensor().dtype()) {
      case DType::kInt64: MR_TRY(OfWholeNumbers<int64_t>(walk)); break;
      case DType::kInt32: MR_TRY(OfWholeNumbers<int32_t>(walk)); break;
      default: {
        // Before Out is sized, for it may be X or Y.
        const float* x = x_.Read();
        const float* y = y_.Read();
        Compute<F>(walk, x, y, out_->Resize<float>(walk.out));
      }
    }
    out_->set_lod(lod);
    return Status::Ok();
  }

 private:
  template <class T>
  Status OfWholeNumbers(const Broadcast& walk) {
    const T* x = x_.tensor().template data<T>();
    const T* y = y_.tensor().template data<T>();
    if constexpr (kDivides<F>) MR_TRY(CheckDivisors<T>(y_.tensor(), y_.name()));
    Compute<F>(walk, x, y, out_->Resize<T>(walk.out));
    return Status::Ok();
  }

  FloatInput x_;
  FloatInput y_;
  Tensor* out_ = nullptr;
  int64_t axis_ = -1;
};

template <class F>
class ElementwiseGradKernel : public BoundKernel<ElementwiseGradKernel<F>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(y_, FloatInput::Bind(context, "Y"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(y_grad_, context.OptionalOutput("Y@GRAD"));
    axis_ = context.op().Int("axis");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    auto made = Broadcast::Create(x_.dims(), y_.dims(), axis_);
    if (!made.ok()) return std::move(made).Context(x_.name() + ", " + y_.name()).status();
    const Broadcast& walk = *made;
    const float* x = x_.Read();
    const float* y = y_.Read();
    MR_ASSIGN(const float* grad, out_grad_.Read(walk.out.numel()));
    // A gradient of Out may be the gradient of X as well: it is read at a place before that is written.
    const bool whole_y = y_.dims() == walk.out;
    float* dy = whole_y ? Sized(y_, y_grad_) : ClearedLike(y_.tensor(), y_grad_);
    if (dy != nullptr) {
      walk.ForEachRun([&](int64_t xi, int64_t yi, int64_t oi, int64_t n, int64_t xs, int64_t ys) {
        if (whole_y && xs == 1) {
          for (int64_t i = 0; i < n; ++i) dy[oi + i] = F::GradY(x[xi + i], y[oi + i], grad[oi + i]);
        } else if (whole_y) {
          for (int64_t i = 0; i < n; ++i) dy[oi + i] = F::GradY(x[xi + i * xs], y[oi + i], grad[oi + i]);
        } else if (ys == 0) {
          float sum = 0;
          for (int64_t i = 0; i < n; ++i) sum += F::GradY(x[xi + i * xs], y[yi], grad[oi + i]);
          dy[yi] += sum;
        } else if (xs == 1) {
          for (int64_t i = 0; i < n; ++i) dy[yi + i] += F::GradY(x[xi + i], y[yi + i], grad[oi + i]);
        } else {
          for (int64_t i = 0; i < n; ++i) dy[yi + i * ys] += F::GradY(x[xi + i * xs], y[yi + i * ys], grad[oi + i]);
        }
      });
    }
    float* dx = x_.dims() == walk.out ? Sized(x_, x_grad_) : ClearedLike(x_.tensor(), x_grad_);
    if (dx == nullptr) return Status::Ok();
    const bool whole = x_.dims() == walk.out;
    walk.ForEachRun([&](int64_t xi, int64_t yi, int64_t oi, int64_t n, int64_t xs, int64_t ys) {
      if (whole && ys == 1) {
        for (int64_t i = 0; i < n; ++i) dx[oi + i] = F::GradX(x[oi + i], y[yi + i], grad[oi + i]);
      } else if (whole) {
        for (int64_t i = 0; i < n; ++i) dx[oi + i] = F::GradX(x[oi + i], y[yi + i * ys], grad[oi + i]);
      } else if (xs == 0) {
        float sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += F::GradX(x[xi], y[yi + i * ys], grad[oi + i]);
        dx[xi] += sum;
      } else {
        for (int64_t i = 0; i < n; ++i) dx[xi + i * xs] += F::GradX(x[xi + i * xs], y[yi + i * ys], grad[oi + i]);
      }
    });
    return Status::Ok();
  }

 private:
  static float* Sized(const FloatInput& like, Tensor* to) {
    return to == nullptr ? nullptr : ResizeLike(like.tensor(), to);
  }

  FloatInput x_;
  FloatInput y_;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* y_grad_ = nullptr;
  int64_t axis_ = -1;
};

/// A sparse gradient times one value: what clipping by the global norm does to it.
class ScaledRowsKernel : public OpKernel {
 public:
  ScaledRowsKernel(const SelectedRows* x, FloatInput y, SelectedRows* out) : x_(x), y_(std::move(y)), out_(out) {}
  Status Run(const RunContext&) override {
    MR_TRY(y_.Expect(1));
    CopyRows(
        *x_, [factor = *y_.Read()](float value) { return value * factor; }, out_);
    return Status::Ok();
  }

 private:
  const SelectedRows* x_;
  FloatInput y_;
  SelectedRows* out_;
};

/// Picks the kernel by what X holds.
struct MulFactory {
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    MR_ASSIGN(const SelectedRows* x, RowsInput(context, "X"));
    if (x == nullptr) return ElementwiseKernel<Mul>::Create(context);
    MR_ASSIGN(FloatInput y, FloatInput::Bind(context, "Y"));
    MR_ASSIGN(SelectedRows * out, RowsOutput(context, "Out"));
    return std::unique_ptr<OpKernel>(std::make_unique<ScaledRowsKernel>(x, std::move(y), out));
  }
};

Status InferElementwise(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta y, context.Input("Y"));
  if (x.kind == VarType::SELECTED_ROWS) {
    if (context.op().type() != "elementwise_mul" || y.dims.numel() != 1) {
      return context.Error("a sparse X can only be multiplied, by one value; Y is " + y.dims.ToString());
    }
    context.SetOutput("Out", x);
    return Status::Ok();
  }
  if (x.dtype != DType::kInt64 && x.dtype != DType::kInt32) MR_TRY(ExpectDType(context, "X", x, DType::kFloat32));
  MR_TRY(ExpectDType(context, "Y", y, x.dtype));
  const auto walk = Broadcast::Create(x.dims, y.dims, context.op().Int("axis"));
  if (!walk.ok()) {
    return context.Error("X \"" + InputArguments(context.op().desc(), "X")[0] + "\", Y \"" +
                         InputArguments(context.op().desc(), "Y")[0] + "\": " + walk.status().message());
  }
  VarMeta out = x;
  out.dims = walk->out;
  if (x.lod_level == 0) out.lod_level = y.lod_level;
  context.SetOutput("Out", out);
  return Status::Ok();
}

constexpr const char* kElementwiseAxis =
    "axis of the larger one at which the smaller one's axes begin; -1: they end together";

template <class Kernel>
OpBuilder RegisterForward(OpRegistry& registry, const std::string& type, const std::string& doc) {
  return registry.Add(type)
      .Doc(doc + " The smaller one is repeated.")
      .Input("X", "any shape")
      .Input("Y", "shape of X, or of some of its axes")
      .Output("Out", "the larger shape")
      .Attr("axis", int64_t{-1}, kElementwiseAxis)
      .InferShape(InferElementwise)
      .Kernel<Kernel>();
}

template <class F, class Kernel = ElementwiseKernel<F>>
void RegisterElementwiseOp(OpRegistry& registry, const std::string& type, const std::string& doc) {
  RegisterForward<Kernel>(registry, type, doc).Grad({.inputs = {"X", "Y"}, .to = {"X", "Y"}});
  registry.AddGradient(type).UnreadInput("Out", "of the forward operator").Kernel<ElementwiseGradKernel<F>>();
}

}  // namespace

void RegisterElementwise(OpRegistry& registry) {
  RegisterElementwiseOp<Add>(registry, "elementwise_add", "Out = X + Y.");
  RegisterElementwiseOp<Sub>(registry, "elementwise_sub", "Out = X - Y.");
  RegisterElementwiseOp<Mul, MulFactory>(registry, "elementwise_mul", "Out = X * Y.");
  RegisterElementwiseOp<Div>(registry, "elementwise_div", "Out = X / Y.");
  RegisterElementwiseOp<Max>(registry, "elementwise_max", "Out = the larger of X and Y.");
  RegisterElementwiseOp<Min>(registry, "elementwise_min", "Out = the smaller of X and Y.");
  RegisterElementwiseOp<Pow>(registry, "elementwise_pow", "Out = X to the power of Y.");
  RegisterForward<ElementwiseKernel<Mod>>(registry, "elementwise_mod",
                                          "Out = the rest of X / Y. A whole Y that is 0 is an error.");
  RegisterForward<ElementwiseKernel<FloorDiv>>(registry, "elementwise_floordiv",
                                               "Out = X / Y, rounded down. A whole Y that is 0 is an error.");
}

}  // namespace millrace
