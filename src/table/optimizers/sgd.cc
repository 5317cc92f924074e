#include "table/row_optimizer.h"

namespace millrace {
namespace {

class SgdRows final : public RowOptimizer {
 public:
  explicit SgdRows(int dim) : RowOptimizer(dim, 0, 0, CopiesOfRow::kAddUp) {}
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    kernels.sgd_rows({step.lr}, rows, gradients, count, dim());
  }
  std::string Describe() const override { return "sgd"; }
};

}  // namespace

std::unique_ptr<RowOptimizer> MakeSgdRows(int dim) { return std::make_unique<SgdRows>(dim); }

}  // namespace millrace
