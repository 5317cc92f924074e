#include <algorithm>
#include <cmath>
#include <sstream>

#include "model.pb.h"
#include "table/ctr_rule.h"

namespace millrace {
namespace {

/// s = g / shows; w -= lr * s * sqrt(g0 / (g0 + G)); G += s * s, a G for each weight. Paddle's StdAdaGradSGDRule, which
/// computes in doubles and keeps floats.
class StdAdagradCtrRule final : public CtrRule {
 public:
  StdAdagradCtrRule(size_t dim, const SparseAdagradSGDRuleParameter& desc, Bounds bounds)
      : CtrRule(dim, dim, desc.initial_range(), bounds),
        lr_(static_cast<float>(desc.learning_rate())),
        initial_(static_cast<float>(desc.initial_g2sum())) {}
  void StartState(float* state) const override { std::fill_n(state, dim(), 0.0F); }
  void Update(const float* gradient, float scale, float* w, float* state) const override {
    for (size_t i = 0; i < dim(); ++i) {
      const double factor = std::sqrt(initial_ / (initial_ + state[i]));
      const double scaled = gradient[i] / scale;
      w[i] = Bounded(static_cast<float>(w[i] - lr_ * scaled * factor));
      state[i] = static_cast<float>(state[i] + scaled * scaled);
    }
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "StdAdaGradSGDRule initial_g2sum=" << initial_;
    return text.str();
  }

 private:
  float lr_;
  float initial_;
};

}  // namespace

std::unique_ptr<CtrRule> MakeStdAdagradCtrRule(size_t dim, const SparseAdagradSGDRuleParameter& desc,
                                               CtrRule::Bounds bounds) {
  return std::make_unique<StdAdagradCtrRule>(dim, desc, bounds);
}

}  // namespace millrace
