#include <cmath>
#include <vector>

#include "model.pb.h"
#include "table/row_optimizer.h"

namespace millrace {
namespace {

/// A rule with l1 sign(w) + l2 w added to gradients: only for updated rows, at each update.
class PenalizedRows final : public RowOptimizer {
 public:
  PenalizedRows(std::unique_ptr<RowOptimizer> rule, int dim, float start, const Regularization& penalty)
      : RowOptimizer(dim, static_cast<size_t>(rule->state_floats() / dim), start, rule->copies()),
        rule_(std::move(rule)),
        l1_(penalty.l1()),
        l2_(penalty.l2()) {}

  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    // Per thread, so a warm batch does not allocate.
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
  /// A resumed run can use other regularization.
  std::string Describe() const override { return rule_->Describe(); }

 private:
  std::unique_ptr<RowOptimizer> rule_;
  float l1_;
  float l2_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakePenalizedRows(std::unique_ptr<RowOptimizer> rule, int dim,
                                                const Regularization& penalty) {
  // The rule's initial state, as it would initialize it.
  std::vector<float> start(static_cast<size_t>(rule->state_floats()));
  rule->InitState(start.data());
  const float first = start.empty() ? 0 : start[0];
  return std::make_unique<PenalizedRows>(std::move(rule), dim, first, penalty);
}

}  // namespace millrace
