#include <algorithm>
#include <cmath>

#include "model.pb.h"
#include "table/ctr_rule.h"
#include "table/optimizers/ctr_settings.h"

namespace millrace {
namespace {

/// s = g / shows; w -= lr * s * sqrt(g0 / (g0 + G)); G += s * s, a G for each weight. Paddle's StdAdaGradSGDRule, which
/// computes in doubles and keeps floats.
class StdAdagradCtrRule final : public CtrRule {
 public:
  StdAdagradCtrRule(size_t dim, const SparseAdagradSGDRuleParameter& desc, Bounds bounds)
      : CtrRule(dim, dim, desc.initial_range(), bounds), settings_(desc) {}
  void StartState(float* state) const override { std::fill_n(state, dim(), 0.0F); }
  void Update(const float* gradient, float scale, float* w, float* state) const override {
    for (size_t i = 0; i < dim(); ++i) {
      const double factor = std::sqrt(settings_.initial / (settings_.initial + state[i]));
      const double scaled = gradient[i] / scale;
      w[i] = Bounded(static_cast<float>(w[i] - settings_.lr * scaled * factor));
      state[i] = static_cast<float>(state[i] + scaled * scaled);
    }
  }
  std::string Describe() const override { return settings_.Describe("StdAdaGradSGDRule"); }

 private:
  const CtrAdagradSettings settings_;
};

}  // namespace

std::unique_ptr<CtrRule> MakeStdAdagradCtrRule(size_t dim, const SparseAdagradSGDRuleParameter& desc,
                                               CtrRule::Bounds bounds) {
  return std::make_unique<StdAdagradCtrRule>(dim, desc, bounds);
}

}  // namespace millrace
