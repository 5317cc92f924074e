#include <algorithm>
#include <cmath>
#include <sstream>

#include "table/row_optimizer.h"

namespace millrace {
namespace {

class AdamRows final : public RowOptimizer {
 public:
  AdamRows(int dim, float beta1, float beta2, float epsilon)
      : dim_(static_cast<size_t>(dim)), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}
  int state_floats() const override { return 2 * static_cast<int>(dim_); }
  void InitState(float* state) const override { std::fill_n(state, 2 * dim_, 0.0F); }
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    const auto number = static_cast<double>(step.number);
    const auto power1 = static_cast<float>(std::pow(static_cast<double>(beta1_), number));
    const auto power2 = static_cast<float>(std::pow(static_cast<double>(beta2_), number));
    kernels.adam_rows(racy::MakeAdamStep(step.lr, beta1_, beta2_, epsilon_, power1, power2), rows, gradients, count,
                      dim_, dim_);
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "adam beta1=" << beta1_ << " beta2=" << beta2_ << " epsilon=" << epsilon_;
    return text.str();
  }

 private:
  size_t dim_;
  float beta1_;
  float beta2_;
  float epsilon_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakeAdamRows(int dim, float beta1, float beta2, float epsilon) {
  return std::make_unique<AdamRows>(dim, beta1, beta2, epsilon);
}

}  // namespace millrace
