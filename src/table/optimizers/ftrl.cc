#include <algorithm>
#include <sstream>

#include "table/row_optimizer.h"

namespace millrace {
namespace {

class FtrlRows final : public RowOptimizer {
 public:
  FtrlRows(int dim, float beta, float l1, float l2) : dim_(static_cast<size_t>(dim)), beta_(beta), l1_(l1), l2_(l2) {}
  int state_floats() const override { return 2 * static_cast<int>(dim_); }
  void InitState(float* state) const override { std::fill_n(state, 2 * dim_, 0.0F); }
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    const float shrink = beta_ / step.lr + l2_;
    kernels.ftrl_rows({step.lr, l1_, shrink}, rows, gradients, count, dim_, dim_);
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "ftrl beta=" << beta_ << " l1=" << l1_ << " l2=" << l2_;
    return text.str();
  }

 private:
  size_t dim_;
  float beta_;
  float l1_;
  float l2_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakeFtrlRows(int dim, float beta, float l1, float l2) {
  return std::make_unique<FtrlRows>(dim, beta, l1, l2);
}

}  // namespace millrace
