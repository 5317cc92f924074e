#include <cmath>

#include "kernels/not_a_number.h"
#include "ops/math/map_op.h"

namespace millrace {
namespace {

struct Square {
  using TakesWholeNumbers = void;
  template <class T>
  static T Forward(T x) {
    return x * x;
  }
  static float Backward(float x, float grad) { return 2 * x * grad; }
};

struct Sqrt {
  static float Forward(float x) { return std::sqrt(x); }
  static float Backward(float out, float grad) { return grad * 0.5F / out; }
};

struct Rsqrt {
  static float Forward(float x) { return 1 / std::sqrt(x); }
  static float Backward(float out, float grad) { return grad * -0.5F * out * out * out; }
};

struct Exp {
  static float Forward(float x) { return std::exp(x); }
  static float Backward(float out, float grad) { return grad * out; }
};

struct Logarithm {
  static float Forward(float x) { return std::log(x); }
  static float Backward(float x, float grad) { return grad / x; }
};

struct Log1p {
  static float Forward(float x) { return std::log1p(x); }
  static float Backward(float x, float grad) { return grad / (1 + x); }
};

struct Reciprocal {
  static float Forward(float x) { return 1 / x; }
  static float Backward(float out, float grad) { return -grad * out * out; }
};

struct Sin {
  static float Forward(float x) { return std::sin(x); }
  static float Backward(float x, float grad) { return grad * std::cos(x); }
};

struct Cos {
  static float Forward(float x) { return std::cos(x); }
  static float Backward(float x, float grad) { return -grad * std::sin(x); }
};

struct Tan {
  static float Forward(float x) { return std::tan(x); }
  static float Backward(float x, float grad) {
    const float cosine = std::cos(x);
    return grad / (cosine * cosine);
  }
};

struct Atan {
  static float Forward(float x) { return std::atan(x); }
  static float Backward(float x, float grad) { return grad / (1 + x * x); }
};

struct Erf {
  static constexpr float kTwoByRootPi = 1.12837917F;
  static float Forward(float x) { return std::erf(x); }
  static float Backward(float x, float grad) { return grad * kTwoByRootPi * std::exp(-x * x); }
};

struct Expm1 {
  static float Forward(float x) { return std::expm1(x); }
  static float Backward(float out, float grad) { return grad * (out + 1); }
};

struct Log2 {
  static constexpr float kLog = 0.69314718F;
  static float Forward(float x) { return std::log2(x); }
  static float Backward(float x, float grad) { return grad / (x * kLog); }
};

struct Log10 {
  static constexpr float kLog = 2.30258509F;
  static float Forward(float x) { return std::log10(x); }
  static float Backward(float x, float grad) { return grad / (x * kLog); }
};

struct Abs {
  using TakesWholeNumbers = void;
  template <class T>
  static T Forward(T x) {
    return std::abs(x);
  }
  static float Backward(float x, float grad) { return x > 0 ? grad : x < 0 ? -grad : ZeroOrNan(x); }
};

struct Power {
  float factor;
  explicit Power(const OpView& op) : factor(op.Float("factor")) {}
  float Forward(float x) const { return std::pow(x, factor); }
  float Backward(float x, float grad) const { return grad * factor * std::pow(x, factor - 1); }
};

/// Steps: their gradient is 0 wherever there is one.
struct Flat {
  static float Backward(float, float) { return 0; }
};
struct Sign : Flat {
  using TakesWholeNumbers = void;
  template <class T>
  static T Forward(T x) {
    return SignOrNan(x);
  }
};
struct Floor : Flat {
  static float Forward(float x) { return std::floor(x); }
};
struct Ceil : Flat {
  static float Forward(float x) { return std::ceil(x); }
};
struct Round : Flat {
  static float Forward(float x) { return std::round(x); }
};

}  // namespace

void RegisterElementary(OpRegistry& registry) {
  RegisterMap<Square, MapReads::kX>(registry, "square", "Out = X * X.");
  RegisterMap<Sqrt, MapReads::kOut>(registry, "sqrt", "Out = the square root of X.");
  RegisterMap<Rsqrt, MapReads::kOut>(registry, "rsqrt", "Out = 1 / sqrt(X).");
  RegisterMap<Exp, MapReads::kOut>(registry, "exp", "Out = e to the power of X.");
  RegisterMap<Logarithm, MapReads::kX>(registry, "log", "Out = the natural logarithm of X.");
  RegisterMap<Log1p, MapReads::kX>(registry, "log1p", "Out = log(1 + X).");
  RegisterMap<Reciprocal, MapReads::kOut>(registry, "reciprocal", "Out = 1 / X.");
  RegisterMap<Sin, MapReads::kX>(registry, "sin", "Out = sin(X).");
  RegisterMap<Cos, MapReads::kX>(registry, "cos", "Out = cos(X).");
  RegisterMap<Tan, MapReads::kX>(registry, "tan", "Out = tan(X).");
  RegisterMap<Atan, MapReads::kX>(registry, "atan", "Out = the angle whose tangent is X.");
  RegisterMap<Erf, MapReads::kX>(registry, "erf", "Out = the error function of X.");
  RegisterMap<Expm1, MapReads::kOut>(registry, "expm1", "Out = exp(X) - 1.");
  RegisterMap<Log2, MapReads::kX>(registry, "log2", "Out = the logarithm of X to the base 2.");
  RegisterMap<Log10, MapReads::kX>(registry, "log10", "Out = the logarithm of X to the base 10.");
  RegisterMap<Abs, MapReads::kX>(registry, "abs", "Out = |X|.");
  RegisterMap<Power, MapReads::kX>(registry, "pow", "Out = X to the power of factor.",
                                   [](OpBuilder& op) { op.Attr("factor", 1.0F, "the exponent"); });
  RegisterMap<Sign, MapReads::kNothing>(registry, "sign", "Out = 1, 0 or -1.");
  RegisterMap<Floor, MapReads::kNothing>(registry, "floor", "Out = the whole number below X.");
  RegisterMap<Ceil, MapReads::kNothing>(registry, "ceil", "Out = the whole number above X.");
  RegisterMap<Round, MapReads::kNothing>(registry, "round", "Out = the nearest whole number, halves away from 0.");
}

}  // namespace millrace
