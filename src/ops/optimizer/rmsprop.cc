#include <cmath>

#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

struct RmsPropStep {
  float lr, decay, epsilon, momentum;
  bool centered;
};

struct RmsProp {
  static constexpr std::array<StateInfo, 3> kStates{
      {{"MeanSquare", "MeanSquareOut", "mean of squared gradients", "mean_square"},
       {"Moment", "MomentOut", "decaying sum of steps", "momentum"},
       {"MeanGrad", "MeanGradOut", "mean of gradients, when centered", "mean_grad"}}};
  static constexpr std::array<StateInfo, 0> kScalars{};
  RmsPropStep step;

  explicit RmsProp(const OpView& op)
      : step{0, op.Float("decay"), op.Float("epsilon"), op.Float("momentum"), op.Bool("centered")} {}
  RmsPropStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const {
    RmsPropStep now = step;
    now.lr = lr;
    return now;
  }
  bool DecaysAllRows() const { return true; }
  static void Row(const racy::Kernels& kernels, const RmsPropStep& s, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    UpdateInPieces<3>(kernels, grads, w, states, n, [&s](float grad, float& weight, std::array<float, 3>& state) {
      auto& [mean_square, moment, mean] = state;
      mean_square = s.decay * mean_square + (1 - s.decay) * grad * grad;
      if (s.centered) mean = s.decay * mean + (1 - s.decay) * grad;
      const float spread = s.centered ? mean_square - mean * mean : mean_square;
      moment = s.momentum * moment + s.lr * grad / std::sqrt(spread + s.epsilon);
      weight -= moment;
    });
  }
};

}  // namespace

void RegisterRmsprop(OpRegistry& registry) {
  AddOptimizer<RmsProp, false>(
      registry, "rmsprop", "Steps by Grad over the root of the mean of its square, with momentum.", [](OpBuilder& op) {
        op.ScalesSteps()
            .Attr("decay", 0.9F, "share of the means that stays")
            .Attr("epsilon", 1e-10F, "keeps the quotient finite")
            .Attr("momentum", 0.0F, "share of the last step that is taken again")
            .Attr("centered", false, "takes the square of the mean gradient off");
      });
}

}  // namespace millrace
