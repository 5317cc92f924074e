#include <cmath>

#include "ops/optimizer/optimizer_kernel.h"
#include "ops/optimizer/power_of_beta.h"

namespace millrace {
namespace {

constexpr const char* kIgnoredHere = "as Paddle writes it; changes nothing here";

struct AdamWStep {
  racy::AdamStep adam;
  float keep;  ///< what the penalty leaves of a weight
};

struct AdamW {
  static constexpr auto kStates = kAdamMeans;
  static constexpr auto kScalars = kAdamPowers;
  static constexpr std::array<const char*, 4> kTensors{"Beta1Tensor", "Beta2Tensor", "EpsilonTensor", "SkipUpdate"};
  float beta1, beta2, epsilon, decay;
  bool lazy, keeps_powers;

  explicit AdamW(const OpView& op)
      : beta1(op.Float("beta1")),
        beta2(op.Float("beta2")),
        epsilon(op.Float("epsilon")),
        decay(op.Bool("with_decay") ? op.Float("lr_ratio") * op.Float("coeff") : 0),
        lazy(op.Bool("lazy_mode")),
        keeps_powers(op.Bool("use_global_beta_pow")) {}

  static bool Updates(const std::array<double, 4>& told) { return !(told[3] > 0); }
  void SetTensors(const std::array<double, 4>& told) {
    float* const places[] = {&beta1, &beta2, &epsilon};
    for (size_t i = 0; i < 3; ++i) {
      if (!std::isnan(told[i])) *places[i] = static_cast<float>(told[i]);
    }
  }
  AdamWStep StepFor(float lr, const std::array<Tensor*, 2>& powers, bool) const {
    return {racy::MakeAdamStep(lr, beta1, beta2, epsilon, PowerOfBeta::Read(powers[0]), PowerOfBeta::Read(powers[1])),
            1 - lr * decay};
  }
  void Finish(const std::array<Tensor*, 2>& powers) const {
    if (keeps_powers) return;
    const float next[2] = {PowerOfBeta::Read(powers[0]) * beta1, PowerOfBeta::Read(powers[1]) * beta2};
    for (size_t i = 0; i < 2; ++i) racy::CopyRow(&next[i], powers[i]->mutable_data<float>(), 1);
  }
  bool DecaysAllRows() const { return !lazy; }
  static void Row(const racy::Kernels& kernels, const AdamWStep& step, const float* grads, float* w,
                  const StateValues& states, size_t n) {
    const racy::AdamStep& s = step.adam;
    UpdateInPieces<2>(kernels, grads, w, states, n, [&](float grad, float& weight, std::array<float, 2>& moments) {
      moments[0] = s.beta1 * moments[0] + (1 - s.beta1) * grad;
      moments[1] = s.beta2 * moments[1] + (1 - s.beta2) * grad * grad;
      weight = weight * step.keep - s.lr * moments[0] / (std::sqrt(moments[1]) + s.epsilon);
    });
  }
  static void Rows(const racy::Kernels& kernels, const AdamWStep& step, const uint64_t* ids, const float* grads,
                   size_t count, size_t dim, float* w, const StateValues& states) {
    UpdateRowsByRow<AdamW>(kernels, step, ids, grads, count, dim, w, states);
  }
};

}  // namespace

void RegisterAdamw(OpRegistry& registry) {
  AddOptimizer<AdamW, false>(
      registry, "adamw", "Adam, after Param lost LearningRate * lr_ratio * coeff of itself.", [](OpBuilder& op) {
        op.Attr("beta1", 0.9F, "share of Moment1 that stays")
            .Attr("beta2", 0.999F, "share of Moment2 that stays")
            .Attr("epsilon", 1e-8F, "keeps the quotient finite")
            .Attr("coeff", 0.01F, "strength of the penalty")
            .Attr("with_decay", true, "whether there is a penalty")
            .Attr("lr_ratio", 1.0F, "factor of LearningRate in the penalty only, as on Paddle's processors")
            .Attr("lazy_mode", false, "rows without a gradient stay")
            .Attr("min_row_size_to_use_multithread", int64_t{1000}, kIgnoredHere)
            .Attr("use_global_beta_pow", false, "the powers of the betas are moved on elsewhere");
      });
}

}  // namespace millrace
