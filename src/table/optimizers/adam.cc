#include <cmath>
#include <sstream>

#include "model.pb.h"
#include "table/row_optimizer.h"

namespace millrace {
namespace {

class AdamRows final : public RowOptimizer {
 public:
  AdamRows(int dim, const AdamDesc& desc)
      : RowOptimizer(dim, 2, 0, CopiesOfRow::kApart),
        beta1_(desc.beta1()),
        beta2_(desc.beta2()),
        epsilon_(desc.epsilon()) {}
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    const auto number = static_cast<double>(step.number);
    const auto power1 = static_cast<float>(std::pow(static_cast<double>(beta1_), number));
    const auto power2 = static_cast<float>(std::pow(static_cast<double>(beta2_), number));
    kernels.adam_rows(racy::MakeAdamStep(step.lr, beta1_, beta2_, epsilon_, power1, power2), rows, gradients, count,
                      dim(), dim());
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "adam beta1=" << beta1_ << " beta2=" << beta2_ << " epsilon=" << epsilon_;
    return text.str();
  }

 private:
  float beta1_;
  float beta2_;
  float epsilon_;
};

}  // namespace

Result<std::unique_ptr<RowOptimizer>> MakeAdamRows(int dim, const AdamDesc& desc) {
  if (desc.lazy_mode()) return std::unique_ptr<RowOptimizer>(std::make_unique<AdamRows>(dim, desc));
  return InvalidConfig(
      "adam { lazy_mode: false } would change every row at each step, which a table that grows cannot do; give "
      "the table a vocabulary or leave lazy_mode true");
}

}  // namespace millrace
