#include "model.pb.h"
#include "table/ctr_rule.h"

namespace millrace {
namespace {

/// w -= lr * g. Paddle's SparseNaiveSGDRule.
class NaiveCtrRule final : public CtrRule {
 public:
  NaiveCtrRule(size_t dim, const SparseNaiveSGDRuleParameter& desc, Bounds bounds)
      : CtrRule(dim, 0, desc.initial_range(), bounds), lr_(static_cast<float>(desc.learning_rate())) {}
  void StartState(float*) const override {}
  void Update(const float* gradient, float, float* w, float*) const override {
    for (size_t i = 0; i < dim(); ++i) w[i] = Bounded(w[i] - lr_ * gradient[i]);
  }
  std::string Describe() const override { return "SparseNaiveSGDRule"; }

 private:
  float lr_;
};

}  // namespace

std::unique_ptr<CtrRule> MakeNaiveCtrRule(size_t dim, const SparseNaiveSGDRuleParameter& desc, CtrRule::Bounds bounds) {
  return std::make_unique<NaiveCtrRule>(dim, desc, bounds);
}

}  // namespace millrace
