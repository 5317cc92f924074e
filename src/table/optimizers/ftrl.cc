#include <algorithm>
#include <array>
#include <sstream>

#include "kernels/racy_pieces.h"
#include "table/row_optimizer.h"

namespace millrace {
namespace {

class FtrlRows final : public RowOptimizer {
 public:
  FtrlRows(int dim, float beta, float l1, float l2, float power)
      : dim_(static_cast<size_t>(dim)), beta_(beta), l1_(l1), l2_(l2), power_(power) {}
  int state_floats() const override { return 2 * static_cast<int>(dim_); }
  void InitState(float* state) const override { std::fill_n(state, 2 * dim_, 0.0F); }
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    const racy::FtrlStep now = {step.lr, l1_, beta_ / step.lr + l2_};
    if (power_ == kRoot) return kernels.ftrl_rows(now, rows, gradients, count, dim_, dim_);
    for (size_t i = 0; i < count; ++i) {
      if (rows[i] == nullptr) continue;
      const std::array<float*, 2> states = {rows[i] + dim_, rows[i] + 2 * dim_};
      racy::FtrlRowOfPower(kernels, now, power_, gradients + i * dim_, rows[i], states, dim_);
    }
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "ftrl beta=" << beta_ << " l1=" << l1_ << " l2=" << l2_;
    if (power_ != kRoot) text << " lr_power=" << power_;
    return text.str();
  }

 private:
  static constexpr float kRoot = -0.5F;  ///< the power that kernels/racy.h has kernels of
  size_t dim_;
  float beta_;
  float l1_;
  float l2_;
  float power_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakeFtrlRows(int dim, float beta, float l1, float l2, float power) {
  return std::make_unique<FtrlRows>(dim, beta, l1, l2, power);
}

}  // namespace millrace
