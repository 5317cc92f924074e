#include <cmath>

#include "ops/optimizer/optimizer_kernel.h"

namespace millrace {
namespace {

struct AdadeltaStep {
  float lr, rho, epsilon;
};

struct Adadelta {
  static constexpr std::array<StateInfo, 2> kStates{
      {{"AvgSquaredGrad", "AvgSquaredGradOut", "mean of squared gradients", "avg_squared_grad"},
       {"AvgSquaredUpdate", "AvgSquaredUpdateOut", "mean of squared steps", "avg_squared_update"}}};
  static constexpr std::array<StateInfo, 0> kScalars{};
  static constexpr float kRateWhenMissing = 1;
  float rho, epsilon;

  explicit Adadelta(const OpView& op) : rho(op.Float("rho")), epsilon(op.Float("epsilon")) {}
  AdadeltaStep StepFor(float lr, const std::array<Tensor*, 2>&, bool) const { return {lr, rho, epsilon}; }
  bool DecaysAllRows() const { return true; }
  static void Row(const racy::Kernels& kernels, const AdadeltaStep& s, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    UpdateInPieces<2>(kernels, grads, w, states, n, [&s](float grad, float& weight, std::array<float, 2>& state) {
      auto& [gradients, steps] = state;
      gradients = s.rho * gradients + (1 - s.rho) * grad * grad;
      const float step = std::sqrt((steps + s.epsilon) / (gradients + s.epsilon)) * grad;
      steps = s.rho * steps + (1 - s.rho) * step * step;
      weight -= s.lr * step;
    });
  }
};

}  // namespace

void RegisterAdadelta(OpRegistry& registry) {
  AddOptimizer<Adadelta, false>(registry, "adadelta",
                                "Steps by Grad, as long as the steps before: Grad times the root of the mean squared "
                                "step over that of the mean squared gradient.",
                                [](OpBuilder& op) {
                                  op.ScalesSteps()
                                      .Attr("rho", 0.95F, "share of both means that stays")
                                      .Attr("epsilon", 1e-6F,
                                            "keeps the quotient finite, and lets the first step start");
                                });
}

}  // namespace millrace
