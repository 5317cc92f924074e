#include "table/row_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "model.pb.h"
#include "table/row_initializer.h"

namespace millrace {
namespace {

class OptimizedRows final : public RowPolicy {
 public:
  OptimizedRows(int dim, const RowInitializer& initializer, std::unique_ptr<RowOptimizer> optimizer)
      : RowPolicy(dim, dim + optimizer->state_floats(), optimizer->copies()),
        initializer_(initializer),
        optimizer_(std::move(optimizer)) {}

  void Start(uint64_t key, float* row) const override {
    initializer_.Fill(key, row, dim());
    optimizer_->InitState(row + dim());
  }
  void StartState(uint64_t, float* row) const override { optimizer_->InitState(row + dim()); }
  void ShowUnknown(uint64_t key, float* weights) const override { initializer_.Fill(key, weights, dim()); }
  Status Check(std::span<const float>) const override { return Status::Ok(); }
  void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
              size_t count) const override {
    optimizer_->Update(kernels, step, rows, gradients, count);
  }
  bool IsIn(TableContent, const float*) const override { return true; }
  std::string Describe() const override { return optimizer_->Describe(); }

 private:
  const RowInitializer initializer_;
  const std::unique_ptr<RowOptimizer> optimizer_;
};

/// Weight of a copy's own squares if others also moved its row. With 1 the steps would be as long as sequential ones;
/// but then the gradients, all taken at the same row, would also have become smaller
/// (docs/adr/0025-ranks-on-copies.md).
constexpr float kOwnSquares = 0.25F;

}  // namespace

float RowPolicy::SquaresOf(const float* row) const {
  if (!has_squares()) return 0;
  std::array<float, 64> squares;
  float sum = 0;
  for (size_t begin = 0; begin < static_cast<size_t>(dim_); begin += squares.size()) {
    const size_t count = std::min(squares.size(), static_cast<size_t>(dim_) - begin);
    racy::CopyRow(row + dim_ + begin, squares.data(), count);
    sum = std::accumulate(squares.data(), squares.data() + count, sum);
  }
  return sum;
}

void RowPolicy::AddAfterOthers(const float* moved, float known, float lr, float* row) const {
  if (has_squares()) {
    const float own = kOwnSquares * std::accumulate(moved + dim_, moved + row_floats_, 0.0F);
    const float then = std::max(known + own, 0.0F);
    const float now = SquaresOf(row) + own;
    if (then < now) racy::Best().axpy_row(std::sqrt(then / now) - 1, moved, row, static_cast<size_t>(dim_));
  }
  AddTo(moved, lr, row);
}

void RowPolicy::AddTo(const float* moved, float lr, float* row) const {
  racy::AddRow(moved, row, static_cast<size_t>(row_floats_));
  if (row_floats_ > dim_) {
    // Rounding must not leave a sum of squares below zero.
    std::array<float, 64> squares;
    for (size_t begin = 0; begin < static_cast<size_t>(dim_); begin += squares.size()) {
      const size_t count = std::min(squares.size(), static_cast<size_t>(dim_) - begin);
      float* const at = row + dim_ + begin;
      racy::CopyRow(at, squares.data(), count);
      if (*std::min_element(squares.data(), squares.data() + count) >= 0) continue;
      for (float& square : squares) square = std::max(square, 0.0F);
      racy::CopyRow(squares.data(), at, count);
    }
  }
  if (copies_ != CopiesOfRow::kByState) return;
  // Weights without updates do not derive from the state.
  const bool has_learnt = std::any_of(moved + dim_, moved + row_floats_, [](float state) { return state != 0; });
  if (has_learnt && lr != 0) Update(racy::Best(), {.lr = lr}, &row, no_gradient_.data(), 1);
}

Result<std::unique_ptr<RowPolicy>> MakeOptimizedRows(const TableDesc& desc, uint64_t seed) {
  MR_ASSIGN(const RowInitializer initializer, RowInitializer::Create(desc.init(), desc.name(), seed));
  MR_ASSIGN(std::unique_ptr<RowOptimizer> optimizer,
            MakeRowOptimizer(desc.optimizer(), desc.dim()).Context("table \"" + desc.name() + "\""));
  return std::unique_ptr<RowPolicy>(std::make_unique<OptimizedRows>(desc.dim(), initializer, std::move(optimizer)));
}

}  // namespace millrace
