#include <cmath>

#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

struct DecayedStep {
  float lr, decay, epsilon;
};

struct DecayedAdagrad {
  static constexpr std::array<StateInfo, 1> kStates{
      {{"Moment", "MomentOut", "decaying mean of squared gradients", "moment"}}};
  static constexpr std::array<StateInfo, 0> kScalars{};
  float decay, epsilon;

  explicit DecayedAdagrad(const OpView& op) : decay(op.Float("decay")), epsilon(op.Float("epsilon")) {}
  DecayedStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const { return {lr, decay, epsilon}; }
  bool DecaysAllRows() const { return true; }
  static void Row(const racy::Kernels& kernels, const DecayedStep& s, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    UpdateInPieces<1>(kernels, grads, w, states, n, [&s](float grad, float& weight, std::array<float, 1>& moment) {
      moment[0] = s.decay * moment[0] + (1 - s.decay) * grad * grad;
      weight -= s.lr * grad / (std::sqrt(moment[0]) + s.epsilon);
    });
  }
};

}  // namespace

void RegisterDecayedAdagrad(OpRegistry& registry) {
  AddOptimizer<DecayedAdagrad, false>(
      registry, "decayed_adagrad",
      "Moment = decay * Moment + (1 - decay) * Grad^2; Param -= LearningRate * Grad / (sqrt(Moment) + epsilon).",
      [](OpBuilder& op) {
        op.ScalesSteps()
            .Attr("decay", 0.95F, "share of the moment that stays")
            .Attr("epsilon", 1e-6F, "keeps the quotient finite");
      });
}

}  // namespace millrace
