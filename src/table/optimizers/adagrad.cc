#include <sstream>

#include "model.pb.h"
#include "table/row_optimizer.h"

namespace millrace {
namespace {

class AdagradRows final : public RowOptimizer {
 public:
  AdagradRows(int dim, const AdagradDesc& desc)
      : RowOptimizer(dim, 1, desc.initial_accumulator(), CopiesOfRow::kAddUp),
        epsilon_(desc.epsilon()),
        initial_(desc.initial_accumulator()) {}
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    kernels.adagrad_rows({step.lr, epsilon_}, rows, gradients, count, dim(), dim());
  }
  std::string Describe() const override {
    std::ostringstream text;
    text << "adagrad epsilon=" << epsilon_ << " initial_accumulator=" << initial_;
    return text.str();
  }

 private:
  float epsilon_;
  float initial_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakeAdagradRows(int dim, const AdagradDesc& desc) {
  return std::make_unique<AdagradRows>(dim, desc);
}

}  // namespace millrace
