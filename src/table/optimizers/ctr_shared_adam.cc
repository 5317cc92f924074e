#include <algorithm>
#include <cmath>

#include "model.pb.h"
#include "table/ctr_rule.h"
#include "table/optimizers/ctr_settings.h"

namespace millrace {
namespace {

/// Adam with one m and one v for all weights: each weight's step uses the m and v that its gradient would give, and the
/// means are stored. Paddle's SparseSharedAdamSGDRule.
class SharedAdamCtrRule final : public CtrRule {
 public:
  SharedAdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, Bounds bounds)
      : CtrRule(dim, 4, desc.initial_range(), bounds), settings_(desc) {}
  void StartState(float* state) const override {
    state[0] = state[1] = 0;
    state[2] = settings_.beta1;
    state[3] = settings_.beta2;
  }
  void Update(const float* gradient, float, float* w, float* state) const override {
    const float rate = settings_.lr * (std::sqrt(1 - state[3]) / (1 - state[2]));
    double means = 0;
    double squares = 0;
    for (size_t i = 0; i < dim(); ++i) {
      const float g = gradient[i];
      const double mean = settings_.beta1 * state[0] + (1 - settings_.beta1) * g;
      const double square = settings_.beta2 * state[1] + (1 - settings_.beta2) * g * g;
      w[i] = Bounded(static_cast<float>(w[i] - rate * (mean / (std::sqrt(square) + settings_.epsilon))));
      means += mean;
      squares += square;
    }
    const auto weights = static_cast<double>(std::max<size_t>(dim(), 1));
    state[0] = static_cast<float>(means / weights);
    state[1] = static_cast<float>(squares / weights);
    state[2] *= settings_.beta1;
    state[3] *= settings_.beta2;
  }
  std::string Describe() const override { return settings_.Describe("SparseSharedAdamSGDRule"); }

 private:
  const CtrAdamSettings settings_;
};

}  // namespace

std::unique_ptr<CtrRule> MakeSharedAdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, CtrRule::Bounds bounds) {
  return std::make_unique<SharedAdamCtrRule>(dim, desc, bounds);
}

}  // namespace millrace
