#pragma once

#include "ops/optimizer/optimizer_kernel.h"
#include "ops/optimizer/power_of_beta.h"

namespace millrace {

/// What adam and adamw have in common: their states, settings and the inputs that replace these.
struct AdamRule {
  static constexpr auto kStates = kAdamMeans;
  static constexpr auto kScalars = kAdamPowers;
  static constexpr std::array<const char*, 4> kTensors{"Beta1Tensor", "Beta2Tensor", "EpsilonTensor", "SkipUpdate"};
  float beta1, beta2, epsilon;
  bool lazy, keeps_powers;

  explicit AdamRule(const OpView& op)
      : beta1(op.Float("beta1")),
        beta2(op.Float("beta2")),
        epsilon(op.Float("epsilon")),
        lazy(op.Bool("lazy_mode")),
        keeps_powers(op.Bool("use_global_beta_pow")) {}

  static bool Updates(const std::array<double, 4>& told) { return !(told[3] > 0); }
  void SetTensors(const std::array<double, 4>& told) {
    float* const settings[] = {&beta1, &beta2, &epsilon};
    for (size_t i = 0; i < 3; ++i) {
      if (!std::isnan(told[i])) *settings[i] = static_cast<float>(told[i]);
    }
  }
  void Finish(const std::array<Tensor*, 2>& powers) const {
    if (keeps_powers) return;
    const float next[2] = {PowerOfBeta::Read(powers[0]) * beta1, PowerOfBeta::Read(powers[1]) * beta2};
    for (size_t i = 0; i < 2; ++i) racy::CopyRow(&next[i], powers[i]->mutable_data<float>(), 1);
  }
  bool DecaysAllRows() const { return !lazy; }

  static OpBuilder& AddAttrs(OpBuilder& op) {
    return op.ScalesSteps()
        .Attr("beta1", 0.9F, "share of Moment1 that stays")
        .Attr("beta2", 0.999F, "share of Moment2 that stays")
        .Attr("epsilon", 1e-8F, "keeps the quotient finite")
        .Attr("lazy_mode", false, "rows without a gradient stay; otherwise their moments decay as well")
        .Attr("min_row_size_to_use_multithread", int64_t{1000}, "as Paddle writes it; changes nothing here")
        .Attr("use_global_beta_pow", false, "the powers of the betas are moved on elsewhere");
  }
};

}  // namespace millrace
