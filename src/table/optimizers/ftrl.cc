#include <array>
#include <sstream>

#include "kernels/racy_pieces.h"
#include "model.pb.h"
#include "table/row_optimizer.h"

namespace millrace {
namespace {

/// Learning rates decrease with the power lr_power of the sum of squares.
class FtrlRows final : public RowOptimizer {
 public:
  FtrlRows(int dim, const FtrlDesc& desc)
      : RowOptimizer(dim, 2, 0, CopiesOfRow::kByState),
        beta_(desc.beta()),
        l1_(desc.l1()),
        l2_(desc.l2()),
        power_(desc.lr_power()) {}
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    const racy::FtrlStep now = {step.lr, l1_, beta_ / step.lr + l2_};
    if (power_ == kRoot) return kernels.ftrl_rows(now, rows, gradients, count, dim(), dim());
    for (size_t i = 0; i < count; ++i) {
      if (rows[i] == nullptr) continue;
      const std::array<float*, 2> states = {rows[i] + dim(), rows[i] + 2 * dim()};
      racy::FtrlRowOfPower(kernels, now, power_, gradients + i * dim(), rows[i], states, dim());
    }
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "ftrl beta=" << beta_ << " l1=" << l1_ << " l2=" << l2_;
    if (power_ != kRoot) text << " lr_power=" << power_;
    return text.str();
  }

 private:
  static constexpr float kRoot = -0.5F;  ///< the power supported by kernels/racy.h
  float beta_;
  float l1_;
  float l2_;
  float power_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakeFtrlRows(int dim, const FtrlDesc& desc) {
  return std::make_unique<FtrlRows>(dim, desc);
}

}  // namespace millrace
