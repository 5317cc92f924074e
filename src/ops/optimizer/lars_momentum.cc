#include <cmath>

#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

struct LarsStep {
  float lr, mu, decay;
};

/// Momentum whose rate is larger for a parameter whose gradient is small beside it.
struct LarsMomentum {
  static constexpr std::array<StateInfo, 1> kStates{{{"Velocity", "VelocityOut", "decaying sum of steps", "velocity"}}};
  static constexpr std::array<StateInfo, 0> kScalars{};

  explicit LarsMomentum(const OpView& op)
      : mu_(op.Float("mu")), coefficient_(op.Float("lars_coeff")), epsilon_(op.Float("epsilon")) {
    const std::vector<float> decay = op.Floats("lars_weight_decay");
    decay_ = decay.empty() ? 0 : decay[0];
  }
  LarsStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const { return {lr, mu_, decay_}; }
  LarsStep ScaledByNorms(LarsStep step, double weights, double gradients) const {
    if (decay_ <= 0 || weights <= 0 || gradients <= 0) return step;
    const auto decay = static_cast<double>(decay_);
    const auto epsilon = static_cast<double>(epsilon_);
    step.lr *=
        static_cast<float>(static_cast<double>(coefficient_) * weights / (gradients + decay * weights + epsilon));
    return step;
  }
  bool DecaysAllRows() const { return true; }
  static void Row(const racy::Kernels& kernels, const LarsStep& s, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    UpdateInPieces<1>(kernels, grads, w, states, n, [&s](float grad, float& weight, std::array<float, 1>& velocity) {
      velocity[0] = s.mu * velocity[0] + s.lr * (grad + s.decay * weight);
      weight -= velocity[0];
    });
  }

 private:
  float mu_, coefficient_, epsilon_;
  float decay_ = 0;
};

Status InferLarsMomentum(InferShapeContext& context) {
  const std::vector<float> decay = context.op().Floats("lars_weight_decay");
  if (decay.size() > 1) return context.Error("lars_weight_decay has " + std::to_string(decay.size()) + " numbers");
  return InferOptimizer(context, LarsMomentum::kStates, LarsMomentum::kScalars);
}

}  // namespace

void RegisterLarsMomentum(OpRegistry& registry) {
  AddOptimizer<LarsMomentum, false>(
      registry, "lars_momentum",
      "Rate = LearningRate * lars_coeff * |Param| / (|Grad| + lars_weight_decay * |Param| + epsilon); "
      "Velocity = mu * Velocity + Rate * (Grad + lars_weight_decay * Param); Param -= Velocity.",
      [](OpBuilder& op) {
        op.ScalesSteps()
            .Attr("mu", 0.9F, "share of the velocity that stays")
            .Attr("lars_coeff", 0.001F, "how far a step goes, as a part of the parameter's length")
            .Attr("lars_weight_decay", std::vector<float>{0.0005F}, "strength of the penalty; 0: plain momentum")
            .Attr("epsilon", 0.0F, "keeps the quotient finite")
            .Fixed("rescale_grad", 1.0F, "factor of Grad");
        op.InferShape(InferLarsMomentum);
      });
}

}  // namespace millrace
