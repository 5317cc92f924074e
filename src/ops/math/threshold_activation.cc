#include <algorithm>
#include <cmath>

#include "kernels/not_a_number.h"
#include "ops/math/map_op.h"

namespace millrace {
namespace {

// Activations that bend at thresholds, or scale what others do.

struct HardShrink {
  float threshold;
  explicit HardShrink(const OpView& op) : threshold(op.Float("threshold")) {}
  float Forward(float x) const { return x <= threshold && x >= -threshold ? 0 : x; }
  float Backward(float x, float grad) const { return x > threshold || x < -threshold ? grad : ZeroOrNan(x); }
};

struct SoftShrink {
  float lambda;
  explicit SoftShrink(const OpView& op) : lambda(op.Float("lambda")) {}
  float Forward(float x) const { return x > lambda ? x - lambda : x < -lambda ? x + lambda : ZeroOrNan(x); }
  float Backward(float x, float grad) const { return x > lambda || x < -lambda ? grad : ZeroOrNan(x); }
};

struct TanhShrink {
  static float Forward(float x) { return x - std::tanh(x); }
  static float Backward(float x, float grad) {
    const float t = std::tanh(x);
    return grad * t * t;
  }
};

struct ThresholdedRelu {
  float threshold;
  explicit ThresholdedRelu(const OpView& op) : threshold(op.Float("threshold")) {}
  float Forward(float x) const { return x <= threshold ? 0 : x; }
  float Backward(float x, float grad) const { return x > threshold ? grad : ZeroOrNan(x); }
};

struct LeakyRelu {
  float alpha;
  explicit LeakyRelu(const OpView& op) : alpha(op.Float("alpha")) {}
  float Forward(float x) const { return x > 0 ? x : alpha * x; }
  float Backward(float x, float grad) const { return x > 0 ? grad : alpha * grad + ZeroOrNan(x); }
};

struct HardTanh {
  float least;
  float largest;
  explicit HardTanh(const OpView& op) : least(op.Float("t_min")), largest(op.Float("t_max")) {}
  float Forward(float x) const { return std::min(std::max(x, least), largest); }
  float Backward(float x, float grad) const { return x > least && x < largest ? grad : ZeroOrNan(x); }
};

struct Selu {
  float scale;
  float alpha;
  explicit Selu(const OpView& op) : scale(op.Float("scale")), alpha(op.Float("alpha")) {}
  float Forward(float x) const { return scale * (x > 0 ? x : alpha * std::exp(x) - alpha); }
  float Backward(float out, float grad) const { return grad * (out > 0 ? scale : out + scale * alpha); }
};

struct Celu {
  float alpha;
  explicit Celu(const OpView& op) : alpha(op.Float("alpha")) {}
  float Forward(float x) const { return x > 0 ? x : alpha * std::expm1(x / alpha); }
  float Backward(float x, float grad) const { return x > 0 ? grad : grad * std::exp(x / alpha); }
};

struct ScaledTanh {
  float inner;
  float outer;
  explicit ScaledTanh(const OpView& op) : inner(op.Float("scale_a")), outer(op.Float("scale_b")) {}
  float Forward(float x) const { return outer * std::tanh(inner * x); }
  float Backward(float x, float grad) const {
    const float t = std::tanh(inner * x);
    return grad * inner * outer * (1 - t * t);
  }
};

/// softplus of a value that is held within the threshold; as in Paddle, the gradient holds the result by it.
struct SoftRelu {
  float threshold;
  explicit SoftRelu(const OpView& op) : threshold(op.Float("threshold")) {}
  float Forward(float x) const { return std::log1p(std::exp(std::min(std::max(x, -threshold), threshold))); }
  float Backward(float out, float grad) const {
    return out > -threshold && out < threshold ? grad * (1 - std::exp(-out)) : ZeroOrNan(out);
  }
};

struct Mish {
  float threshold;
  explicit Mish(const OpView& op) : threshold(op.Float("threshold")) {}
  float Softplus(float x) const { return x > threshold ? x : x < -threshold ? std::exp(x) : std::log1p(std::exp(x)); }
  float Forward(float x) const { return x * std::tanh(Softplus(x)); }
  float Backward(float x, float grad) const {
    const float soft = Softplus(x);
    const float t = std::tanh(soft);
    return grad * (t + x * (1 - t * t) * -std::expm1(-soft));
  }
};

}  // namespace

void RegisterThresholdActivation(OpRegistry& registry) {
  RegisterMap<HardShrink, MapReads::kX>(registry, "hard_shrink", "Out = X, or 0 within the threshold.",
                                        [](OpBuilder& op) { op.Attr("threshold", 0.5F, "size up to which Out is 0"); });
  RegisterMap<SoftShrink, MapReads::kX>(registry, "softshrink", "Out = X moved towards 0 by lambda.",
                                        [](OpBuilder& op) { op.Attr("lambda", 0.5F, "size up to which Out is 0"); });
  RegisterMap<TanhShrink, MapReads::kX>(registry, "tanh_shrink", "Out = X - tanh(X).");
  RegisterMap<ThresholdedRelu, MapReads::kX>(
      registry, "thresholded_relu", "Out = X above the threshold, 0 elsewhere.",
      [](OpBuilder& op) { op.Attr("threshold", 1.0F, "value up to which Out is 0"); });
  RegisterMap<LeakyRelu, MapReads::kX>(registry, "leaky_relu", "Out = X, times alpha where it is negative.",
                                       [](OpBuilder& op) { op.Attr("alpha", 0.02F, "slope below 0"); });
  RegisterMap<HardTanh, MapReads::kX>(registry, "brelu", "Out = min(max(X, t_min), t_max).", [](OpBuilder& op) {
    op.Attr("t_min", 0.0F, "least value").Attr("t_max", 24.0F, "largest value");
  });
  RegisterMap<Selu, MapReads::kOut>(registry, "selu", "Out = scale * X, or scale * alpha * (exp(X) - 1) below 0.",
                                    [](OpBuilder& op) {
                                      op.Attr("scale", 1.0507009873554805F, "factor");
                                      op.Attr("alpha", 1.6732632423543772F, "factor below 0");
                                    });
  RegisterMap<Celu, MapReads::kX>(registry, "celu", "Out = X, or alpha * (exp(X / alpha) - 1) where it is negative.",
                                  [](OpBuilder& op) { op.Attr("alpha", 1.0F, "where it ends below 0"); });
  RegisterMap<ScaledTanh, MapReads::kX>(registry, "stanh", "Out = scale_b * tanh(scale_a * X).", [](OpBuilder& op) {
    op.Attr("scale_a", 0.67F, "factor of X").Attr("scale_b", 1.7159F, "factor of the result");
  });
  RegisterMap<SoftRelu, MapReads::kOut>(registry, "soft_relu", "Out = log(1 + exp(X)), X held within the threshold.",
                                        [](OpBuilder& op) { op.Attr("threshold", 40.0F, "largest size of X"); });
  RegisterMap<Mish, MapReads::kX>(registry, "mish", "Out = X * tanh(log(1 + exp(X))).",
                                  [](OpBuilder& op) { op.Attr("threshold", 20.0F, "log(1 + exp(X)) is X above it"); });
}

}  // namespace millrace
