#include <cmath>

#include "ops/optimizer/adam_rule.h"

namespace millrace {
namespace {

struct AdamWStep {
  racy::AdamStep adam;
  float keep;  ///< what the penalty leaves of a weight
};

struct AdamW : AdamRule {
  float decay;

  explicit AdamW(const OpView& op)
      : AdamRule(op), decay(op.Bool("with_decay") ? op.Float("lr_ratio") * op.Float("coeff") : 0) {}

  AdamWStep StepFor(float lr, const std::array<Tensor*, 2>& powers, bool) const {
    return {racy::MakeAdamStep(lr, beta1, beta2, epsilon, PowerOfBeta::Read(powers[0]), PowerOfBeta::Read(powers[1])),
            1 - lr * decay};
  }
  static void Row(const racy::Kernels& kernels, const AdamWStep& step, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    const racy::AdamStep& s = step.adam;
    UpdateInPieces<2>(kernels, grads, w, states, n, [&](float grad, float& weight, std::array<float, 2>& moments) {
      moments[0] = s.beta1 * moments[0] + (1 - s.beta1) * grad;
      moments[1] = s.beta2 * moments[1] + (1 - s.beta2) * grad * grad;
      weight = weight * step.keep - s.lr * moments[0] / (std::sqrt(moments[1]) + s.epsilon);
    });
  }
};

}  // namespace

void RegisterAdamw(OpRegistry& registry) {
  AddOptimizer<AdamW, false>(
      registry, "adamw", "Adam, after Param lost LearningRate * lr_ratio * coeff of itself.", [](OpBuilder& op) {
        AdamW::AddAttrs(op)
            .Attr("coeff", 0.01F, "strength of the penalty")
            .Attr("with_decay", true, "whether there is a penalty")
            .Attr("lr_ratio", 1.0F, "factor of LearningRate in the penalty only, as on Paddle's processors");
      });
}

}  // namespace millrace
