#include <algorithm>
#include <cmath>

#include "kernels/not_a_number.h"
#include "ops/math/map_op.h"

namespace millrace {
namespace {

float Logistic(float x) { return 1 / (1 + std::exp(-x)); }

struct Relu {
  static float Forward(float x) { return x < 0 ? 0 : x; }
  static float Backward(float out, float grad) { return out > 0 ? grad : ZeroOrNan(out); }
};

struct Sigmoid {
  static float Forward(float x) { return Logistic(x); }
  static float Backward(float out, float grad) { return grad * out * (1 - out); }
};

struct Tanh {
  static float Forward(float x) { return std::tanh(x); }
  static float Backward(float out, float grad) { return grad * (1 - out * out); }
};

struct LogSigmoid {
  static float Forward(float x) { return std::min(x, 0.0F) - std::log1p(std::exp(-std::abs(x))); }
  static float Backward(float x, float grad) { return grad * Logistic(-x); }
};

struct Silu {
  static float Forward(float x) { return x * Logistic(x); }
  static float Backward(float x, float grad) {
    const float s = Logistic(x);
    return grad * s * (1 + x * (1 - s));
  }
};

struct Softsign {
  static float Forward(float x) { return x / (1 + std::abs(x)); }
  static float Backward(float x, float grad) {
    const float below = 1 + std::abs(x);
    return grad / (below * below);
  }
};

struct Relu6 {
  float threshold;
  explicit Relu6(const OpView& op) : threshold(op.Float("threshold")) {}
  float Forward(float x) const { return std::min(std::max(x, 0.0F), threshold); }
  float Backward(float out, float grad) const { return out > 0 && out < threshold ? grad : ZeroOrNan(out); }
};

struct Elu {
  float alpha;
  explicit Elu(const OpView& op) : alpha(op.Float("alpha")) {}
  float Forward(float x) const { return x > 0 ? x : alpha * std::expm1(x); }
  float Backward(float x, float grad) const { return x > 0 ? grad : grad * alpha * std::exp(x); }
};

struct Swish {
  float beta;
  explicit Swish(const OpView& op) : beta(op.Float("beta")) {}
  float Forward(float x) const { return x * Logistic(beta * x); }
  float Backward(float x, float grad) const {
    const float s = Logistic(beta * x);
    return grad * s * (1 + beta * x * (1 - s));
  }
};

struct Softplus {
  float beta;
  float threshold;
  explicit Softplus(const OpView& op) : beta(op.Float("beta")), threshold(op.Float("threshold")) {}
  float Forward(float x) const { return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta; }
  float Backward(float x, float grad) const { return x * beta > threshold ? grad : grad * Logistic(x * beta); }
};

struct HardSigmoid {
  float slope;
  float offset;
  explicit HardSigmoid(const OpView& op) : slope(op.Float("slope")), offset(op.Float("offset")) {}
  float Forward(float x) const { return std::min(std::max(slope * x + offset, 0.0F), 1.0F); }
  float Backward(float out, float grad) const { return out > 0 && out < 1 ? grad * slope : ZeroOrNan(out); }
};

struct HardSwish {
  float threshold;
  float scale;
  float offset;
  explicit HardSwish(const OpView& op)
      : threshold(op.Float("threshold")), scale(op.Float("scale")), offset(op.Float("offset")) {}
  float Forward(float x) const { return x * std::min(std::max(x + offset, 0.0F), threshold) / scale; }
  float Backward(float x, float grad) const {
    const float inside = x + offset;
    if (inside <= 0) return 0;
    return inside >= threshold ? grad : grad * (2 * x + offset) / scale;
  }
};

/// x times the normal distribution's share below x, exactly or by its approximation with tanh.
struct Gelu {
  bool approximate;
  explicit Gelu(const OpView& op) : approximate(op.Bool("approximate")) {}
  static constexpr float kRootHalf = 0.70710678F;
  static constexpr float kRootTwoByPi = 0.79788456F;
  static constexpr float kCubic = 0.044715F;

  float Forward(float x) const {
    if (!approximate) return 0.5F * x * (1 + std::erf(x * kRootHalf));
    return 0.5F * x * (1 + std::tanh(kRootTwoByPi * (x + kCubic * x * x * x)));
  }
  float Backward(float x, float grad) const {
    if (!approximate) {
      const float density = 0.5F * kRootTwoByPi * std::exp(-0.5F * x * x);
      return grad * (0.5F * (1 + std::erf(x * kRootHalf)) + x * density);
    }
    const float t = std::tanh(kRootTwoByPi * (x + kCubic * x * x * x));
    return grad * 0.5F * (1 + t + x * (1 - t * t) * kRootTwoByPi * (1 + 3 * kCubic * x * x));
  }
};

}  // namespace

void RegisterActivation(OpRegistry& registry) {
  RegisterMap<Relu, MapReads::kOut>(registry, "relu", "Out = max(X, 0).");
  RegisterMap<Sigmoid, MapReads::kOut>(registry, "sigmoid", "Out = 1 / (1 + exp(-X)).");
  RegisterMap<Tanh, MapReads::kOut>(registry, "tanh", "Out = tanh(X).");
  RegisterMap<LogSigmoid, MapReads::kX>(registry, "logsigmoid", "Out = log(sigmoid(X)).");
  RegisterMap<Silu, MapReads::kX>(registry, "silu", "Out = X * sigmoid(X).");
  RegisterMap<Softsign, MapReads::kX>(registry, "softsign", "Out = X / (1 + |X|).");
  RegisterMap<Relu6, MapReads::kOut>(registry, "relu6", "Out = min(max(X, 0), threshold).",
                                     [](OpBuilder& op) { op.Attr("threshold", 6.0F, "largest value"); });
  RegisterMap<Elu, MapReads::kX>(registry, "elu", "Out = X, or alpha * (exp(X) - 1) where it is negative.",
                                 [](OpBuilder& op) { op.Attr("alpha", 1.0F, "factor below 0"); });
  RegisterMap<Swish, MapReads::kX>(registry, "swish", "Out = X * sigmoid(beta * X).",
                                   [](OpBuilder& op) { op.Attr("beta", 1.0F, "factor in the sigmoid"); });
  RegisterMap<Softplus, MapReads::kX>(registry, "softplus", "Out = log(1 + exp(beta * X)) / beta.", [](OpBuilder& op) {
    op.Attr("beta", 1.0F, "steepness").Attr("threshold", 20.0F, "Out = X where beta * X is above it");
  });
  RegisterMap<HardSigmoid, MapReads::kOut>(
      registry, "hard_sigmoid", "Out = slope * X + offset, held in [0, 1].",
      [](OpBuilder& op) { op.Attr("slope", 0.2F, "factor").Attr("offset", 0.5F, "term"); });
  RegisterMap<HardSwish, MapReads::kX>(
      registry, "hard_swish", "Out = X * min(max(X + offset, 0), threshold) / scale.", [](OpBuilder& op) {
        op.Attr("threshold", 6.0F, "largest factor").Attr("scale", 6.0F, "divisor").Attr("offset", 3.0F, "term");
      });
  RegisterMap<Gelu, MapReads::kX>(registry, "gelu", "Out = X times the normal distribution's share below X.",
                                  [](OpBuilder& op) { op.Attr("approximate", false, "by tanh instead of erf"); });
}

}  // namespace millrace
