#include <cmath>
#include <sstream>

#include "model.pb.h"
#include "table/ctr_rule.h"

namespace millrace {
namespace {

/// Adam whose m and v are one for all weights: each weight takes a step by the m and v that its own gradient would
/// make, and what is kept is their mean. Paddle's SparseSharedAdamSGDRule.
class SharedAdamCtrRule final : public CtrRule {
 public:
  SharedAdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, Bounds bounds)
      : CtrRule(dim, 4, desc.initial_range(), bounds),
        lr_(static_cast<float>(desc.learning_rate())),
        beta1_(static_cast<float>(desc.beta1_decay_rate())),
        beta2_(static_cast<float>(desc.beta2_decay_rate())),
        epsilon_(static_cast<float>(desc.ada_epsilon())) {}
  void StartState(float* state) const override {
    state[0] = state[1] = 0;
    state[2] = beta1_;
    state[3] = beta2_;
  }
  void Update(const float* gradient, float, float* w, float* state) const override {
    const float rate = lr_ * (std::sqrt(1 - state[3]) / (1 - state[2]));
    double means = 0;
    double squares = 0;
    for (size_t i = 0; i < dim(); ++i) {
      const float g = gradient[i];
      const double mean = beta1_ * state[0] + (1 - beta1_) * g;
      const double square = beta2_ * state[1] + (1 - beta2_) * g * g;
      w[i] = Bounded(static_cast<float>(w[i] - rate * (mean / (std::sqrt(square) + epsilon_))));
      means += mean;
      squares += square;
    }
    state[0] = static_cast<float>(means / static_cast<double>(dim()));
    state[1] = static_cast<float>(squares / static_cast<double>(dim()));
    state[2] *= beta1_;
    state[3] *= beta2_;
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "SparseSharedAdamSGDRule beta1=" << beta1_ << " beta2=" << beta2_ << " epsilon=" << epsilon_;
    return text.str();
  }

 private:
  float lr_;
  float beta1_;
  float beta2_;
  float epsilon_;
};

}  // namespace

std::unique_ptr<CtrRule> MakeSharedAdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, CtrRule::Bounds bounds) {
  return std::make_unique<SharedAdamCtrRule>(dim, desc, bounds);
}

}  // namespace millrace
