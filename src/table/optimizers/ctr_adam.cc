#include <algorithm>
#include <cmath>
#include <sstream>

#include "model.pb.h"
#include "table/ctr_rule.h"

namespace millrace {
namespace {

/// r = lr * sqrt(1 - p2) / (1 - p1); m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g * g; w -= r * m / (sqrt(v) +
/// epsilon); p1 *= b1; p2 *= b2. The powers are the row's own and start from the betas; shows do not divide. Paddle's
/// SparseAdamSGDRule.
class AdamCtrRule final : public CtrRule {
 public:
  AdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, Bounds bounds)
      : CtrRule(dim, 2 * dim + 2, desc.initial_range(), bounds),
        lr_(static_cast<float>(desc.learning_rate())),
        beta1_(static_cast<float>(desc.beta1_decay_rate())),
        beta2_(static_cast<float>(desc.beta2_decay_rate())),
        epsilon_(static_cast<float>(desc.ada_epsilon())) {}
  void StartState(float* state) const override {
    std::fill_n(state, 2 * dim(), 0.0F);
    state[2 * dim()] = beta1_;
    state[2 * dim() + 1] = beta2_;
  }
  void Update(const float* gradient, float, float* w, float* state) const override {
    float* const mean = state;
    float* const square = state + dim();
    float* const powers = state + 2 * dim();
    const float rate = lr_ * (std::sqrt(1 - powers[1]) / (1 - powers[0]));
    for (size_t i = 0; i < dim(); ++i) {
      const float g = gradient[i];
      mean[i] = beta1_ * mean[i] + (1 - beta1_) * g;
      square[i] = beta2_ * square[i] + (1 - beta2_) * g * g;
      w[i] = Bounded(w[i] - rate * (mean[i] / (std::sqrt(square[i]) + epsilon_)));
    }
    powers[0] *= beta1_;
    powers[1] *= beta2_;
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "SparseAdamSGDRule beta1=" << beta1_ << " beta2=" << beta2_ << " epsilon=" << epsilon_;
    return text.str();
  }

 private:
  float lr_;
  float beta1_;
  float beta2_;
  float epsilon_;
};

}  // namespace

std::unique_ptr<CtrRule> MakeAdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, CtrRule::Bounds bounds) {
  return std::make_unique<AdamCtrRule>(dim, desc, bounds);
}

}  // namespace millrace
