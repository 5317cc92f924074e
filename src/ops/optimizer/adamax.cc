#include <algorithm>
#include <cmath>

#include "kernels/not_a_number.h"
#include "ops/optimizer/optimizer_kernel.h"
#include "ops/optimizer/power_of_beta.h"

namespace millrace {
namespace {

struct AdamaxStep {
  float lr, beta1, beta2, epsilon;
};

struct Adamax {
  static constexpr std::array<StateInfo, 2> kStates{
      {{"Moment", "MomentOut", "mean of gradients", "moment"},
       {"InfNorm", "InfNormOut", "decaying largest gradient", "inf_norm"}}};
  static constexpr std::array<StateInfo, 1> kScalars{
      {{"Beta1Pow", "Beta1PowOut", "[1], beta1 to the step's power", "beta1_pow_acc", "beta1"}}};

  explicit Adamax(const OpView& op)
      : beta1_(op, "beta1", "Beta1PowOut"), beta2_(op.Float("beta2")), epsilon_(op.Float("epsilon")) {}
  AdamaxStep StepFor(float lr, const std::array<Tensor*, 2>& powers, bool) const {
    return {lr / (1 - PowerOfBeta::Read(powers[0])), beta1_.beta(), beta2_, epsilon_};
  }
  void Finish(const std::array<Tensor*, 2>& powers) const { beta1_.MoveOn(powers[0]); }
  bool DecaysAllRows() const { return true; }
  static void Row(const racy::Kernels& kernels, const AdamaxStep& s, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    UpdateInPieces<2>(kernels, grads, w, states, n, [&s](float grad, float& weight, std::array<float, 2>& state) {
      auto& [moment, largest] = state;
      moment = s.beta1 * moment + (1 - s.beta1) * grad;
      largest = LargerOrNan(std::abs(grad), s.beta2 * largest + s.epsilon);
      weight -= s.lr * (moment / largest);
    });
  }

 private:
  PowerOfBeta beta1_;
  float beta2_, epsilon_;
};

}  // namespace

void RegisterAdamax(OpRegistry& registry) {
  AddOptimizer<Adamax, false>(
      registry, "adamax",
      "Moment = beta1 * Moment + (1 - beta1) * Grad; InfNorm = max(|Grad|, beta2 * InfNorm + epsilon); "
      "Param -= LearningRate / (1 - Beta1Pow) * Moment / InfNorm. Beta1PowOut, where it is bound, moves on by beta1.",
      [](OpBuilder& op) {
        op.ScalesSteps()
            .Attr("beta1", 0.9F, "share of Moment that stays")
            .Attr("beta2", 0.999F, "share of InfNorm that stays")
            .Attr("epsilon", 1e-8F, "keeps the quotient finite");
      });
}

}  // namespace millrace
