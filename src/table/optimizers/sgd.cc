#include "table/row_optimizer.h"

namespace millrace {
namespace {

class SgdRows final : public RowOptimizer {
 public:
  explicit SgdRows(int dim) : dim_(static_cast<size_t>(dim)) {}
  int state_floats() const override { return 0; }
  void InitState(float*) const override {}
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    kernels.sgd_rows({step.lr}, rows, gradients, count, dim_);
  }
  std::string Describe() const override { return "sgd"; }

 private:
  size_t dim_;
};

}  // namespace

std::unique_ptr<RowOptimizer> MakeSgdRows(int dim) { return std::make_unique<SgdRows>(dim); }

}  // namespace millrace
