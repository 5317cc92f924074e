#include <algorithm>
#include <sstream>

#include "table/row_optimizer.h"

namespace millrace {
namespace {

class AdagradRows final : public RowOptimizer {
 public:
  AdagradRows(int dim, float epsilon, float initial)
      : dim_(static_cast<size_t>(dim)), epsilon_(epsilon), initial_(initial) {}
  int state_floats() const override { return static_cast<int>(dim_); }
  void InitState(float* state) const override { std::fill_n(state, dim_, initial_); }
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    kernels.adagrad_rows({step.lr, epsilon_}, rows, gradients, count, dim_, dim_);
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "adagrad epsilon=" << epsilon_ << " initial_accumulator=" << initial_;
    return text.str();
  }

 private:
  size_t dim_;
  float epsilon_;
  float initial_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakeAdagradRows(int dim, float epsilon, float initial_accumulator) {
  return std::make_unique<AdagradRows>(dim, epsilon, initial_accumulator);
}

}  // namespace millrace
