#include <algorithm>
#include <cmath>

#include "model.pb.h"
#include "table/ctr_rule.h"
#include "table/optimizers/ctr_settings.h"

namespace millrace {
namespace {

/// r = lr * sqrt(1 - p2) / (1 - p1); m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g * g; w -= r * m / (sqrt(v) +
/// epsilon); p1 *= b1; p2 *= b2. The powers are the row's own and start from the betas; shows do not divide. Paddle's
/// SparseAdamSGDRule.
class AdamCtrRule final : public CtrRule {
 public:
  AdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, Bounds bounds)
      : CtrRule(dim, 2 * dim + 2, desc.initial_range(), bounds), settings_(desc) {}
  void StartState(float* state) const override {
    std::fill_n(state, 2 * dim(), 0.0F);
    state[2 * dim()] = settings_.beta1;
    state[2 * dim() + 1] = settings_.beta2;
  }
  void Update(const float* gradient, float, float* w, float* state) const override {
    float* const mean = state;
    float* const square = state + dim();
    float* const powers = state + 2 * dim();
    const float rate = settings_.lr * (std::sqrt(1 - powers[1]) / (1 - powers[0]));
    for (size_t i = 0; i < dim(); ++i) {
      const float g = gradient[i];
      mean[i] = settings_.beta1 * mean[i] + (1 - settings_.beta1) * g;
      square[i] = settings_.beta2 * square[i] + (1 - settings_.beta2) * g * g;
      w[i] = Bounded(w[i] - rate * (mean[i] / (std::sqrt(square[i]) + settings_.epsilon)));
    }
    powers[0] *= settings_.beta1;
    powers[1] *= settings_.beta2;
  }
  std::string Describe() const override { return settings_.Describe("SparseAdamSGDRule"); }

 private:
  const CtrAdamSettings settings_;
};

}  // namespace

std::unique_ptr<CtrRule> MakeAdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, CtrRule::Bounds bounds) {
  return std::make_unique<AdamCtrRule>(dim, desc, bounds);
}

}  // namespace millrace
