#include <cmath>

#include "ops/optimizer/optimizer_kernel.h"
#include "ops/optimizer/power_of_beta.h"

namespace millrace {
namespace {

struct LambStep {
  float lr, beta1, beta2, epsilon, decay;
  float rest1, rest2;  ///< what the moments are divided by
};

/// Adam whose rate suits the length of each parameter, as that of LarsMomentum does.
struct Lamb {
  static constexpr auto kStates = kAdamMeans;
  static constexpr auto kScalars = kAdamPowers;
  static constexpr std::array<const char*, 1> kTensors{"SkipUpdate"};

  explicit Lamb(const OpView& op)
      : beta1_(op, "beta1", "Beta1PowOut"),
        beta2_(op, "beta2", "Beta2PowOut"),
        epsilon_(op.Float("epsilon")),
        decay_(op.Float("weight_decay")),
        adapts_(decay_ > 0 || op.Bool("always_adapt")) {}

  static bool Updates(const std::array<double, 1>& told) { return !(told[0] > 0); }
  void SetTensors(const std::array<double, 1>&) {}
  LambStep StepFor(float lr, const std::array<Tensor*, 2>& powers, bool) const {
    return {lr,
            beta1_.beta(),
            beta2_.beta(),
            epsilon_,
            decay_,
            1 - PowerOfBeta::Read(powers[0]),
            1 - PowerOfBeta::Read(powers[1])};
  }
  void Finish(const std::array<Tensor*, 2>& powers) const {
    beta1_.MoveOn(powers[0]);
    beta2_.MoveOn(powers[1]);
  }
  bool DecaysAllRows() const { return true; }
  static void Direct(const racy::Kernels& kernels, const LambStep& s, const float* grads, const float* weights,
                     const StateValues& states, size_t n, float* direction) {
    std::copy_n(weights, n, direction);
    UpdateInPieces<2>(kernels, grads, direction, states, n, [&s](float grad, float& way, std::array<float, 2>& state) {
      auto& [mean, squares] = state;
      mean = s.beta1 * mean + (1 - s.beta1) * grad;
      squares = s.beta2 * squares + (1 - s.beta2) * grad * grad;
      way = mean / s.rest1 / (std::sqrt(squares / s.rest2) + s.epsilon) + s.decay * way;
    });
  }
  LambStep ScaledByNorms(LambStep step, double weights, double direction) const {
    if (adapts_ && !(weights <= 0 || direction <= 0)) step.lr *= static_cast<float>(weights / direction);
    return step;
  }
  static void Row(const racy::Kernels& kernels, const LambStep& s, const float* direction, float* w, const StateValues&,
                  size_t n) {
    kernels.sgd_row({s.lr}, direction, w, n);
  }

 private:
  PowerOfBeta beta1_, beta2_;
  float epsilon_, decay_;
  bool adapts_;
};

}  // namespace

void RegisterLamb(OpRegistry& registry) {
  AddOptimizer<Lamb, false>(
      registry, "lamb",
      "Step = Adam's quotient + weight_decay * Param; Param -= LearningRate * |Param| / |Step| * Step. The outputs of "
      "the powers, where they are bound, move on by the betas.",
      [](OpBuilder& op) {
        op.ScalesSteps()
            .Attr("weight_decay", 0.01F, "strength of the penalty; 0: the step is that of Adam")
            .Attr("beta1", 0.9F, "share of Moment1 that stays")
            .Attr("beta2", 0.999F, "share of Moment2 that stays")
            .Attr("epsilon", 1e-6F, "keeps the quotient finite")
            .Attr("always_adapt", false, "the step suits the length of Param even without weight_decay");
      });
}

}  // namespace millrace
