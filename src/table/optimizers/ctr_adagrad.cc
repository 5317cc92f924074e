#include <algorithm>
#include <cmath>

#include "model.pb.h"
#include "table/ctr_rule.h"
#include "table/optimizers/ctr_settings.h"

namespace millrace {
namespace {

/// s = g / shows; w -= lr * s * sqrt(g0 / (g0 + G)); G += mean(s * s), one G for all weights. Paddle's
/// SparseAdaGradSGDRule, which computes in doubles and keeps floats.
class AdagradCtrRule final : public CtrRule {
 public:
  AdagradCtrRule(size_t dim, const SparseAdagradSGDRuleParameter& desc, Bounds bounds)
      : CtrRule(dim, 1, desc.initial_range(), bounds), settings_(desc) {}
  void StartState(float* state) const override { *state = 0; }
  void Update(const float* gradient, float scale, float* w, float* state) const override {
    const double factor = std::sqrt(settings_.initial / (settings_.initial + *state));
    double added = 0;
    for (size_t i = 0; i < dim(); ++i) {
      const double scaled = gradient[i] / scale;
      w[i] = Bounded(static_cast<float>(w[i] - settings_.lr * scaled * factor));
      added += scaled * scaled;
    }
    *state = static_cast<float>(*state + added / static_cast<double>(std::max<size_t>(dim(), 1)));
  }
  std::string Describe() const override { return settings_.Describe("SparseAdaGradSGDRule"); }

 private:
  const CtrAdagradSettings settings_;
};

}  // namespace

std::unique_ptr<CtrRule> MakeAdagradCtrRule(size_t dim, const SparseAdagradSGDRuleParameter& desc,
                                            CtrRule::Bounds bounds) {
  return std::make_unique<AdagradCtrRule>(dim, desc, bounds);
}

}  // namespace millrace
