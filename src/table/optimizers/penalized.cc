#include <cmath>
#include <vector>

#include "model.pb.h"
#include "table/row_optimizer.h"

namespace millrace {
namespace {

/// A rule whose gradients have l1 sign(w) + l2 w on top: of the rows that are updated, each time that they are.
class PenalizedRows final : public RowOptimizer {
 public:
  PenalizedRows(std::unique_ptr<RowOptimizer> rule, int dim, float start, const Regularization& penalty)
      : RowOptimizer(dim, static_cast<size_t>(rule->state_floats() / dim), start, rule->copies()),
        rule_(std::move(rule)),
        l1_(penalty.l1()),
        l2_(penalty.l2()) {}

  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    // Kept by each thread, so that a warm batch allocates nothing.
    thread_local std::vector<float> penalized;
    thread_local std::vector<float> weights;
    penalized.assign(gradients, gradients + count * dim());
    weights.resize(dim());
    for (size_t row = 0; row < count; ++row) {
      racy::CopyRow(rows[row], weights.data(), dim());
      float* gradient = penalized.data() + row * dim();
      for (size_t i = 0; i < dim(); ++i) {
        const float w = weights[i];
        gradient[i] += l2_ * w + (w > 0 ? l1_ : w < 0 ? -l1_ : 0.0F);
      }
    }
    rule_->Update(kernels, step, rows, penalized.data(), count);
  }
  /// A run that goes on takes other penalties.
  std::string Describe() const override { return rule_->Describe(); }

 private:
  std::unique_ptr<RowOptimizer> rule_;
  float l1_;
  float l2_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakePenalizedRows(std::unique_ptr<RowOptimizer> rule, int dim,
                                                const Regularization& penalty) {
  // What the rule's state starts from is what it would have started itself.
  std::vector<float> start(static_cast<size_t>(rule->state_floats()));
  rule->InitState(start.data());
  const float first = start.empty() ? 0 : start[0];
  return std::make_unique<PenalizedRows>(std::move(rule), dim, first, penalty);
}

}  // namespace millrace
