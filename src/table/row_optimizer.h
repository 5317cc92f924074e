#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "kernels/racy.h"

namespace millrace {

class AdagradDesc;
class AdamDesc;
class FtrlDesc;
class OptimizerDesc;
class Regularization;

/// The parameters of one push.
struct RowStep {
  float lr = 0;
  int64_t number = 1;  ///< pushes of this table so far, including this one
  float examples = 1;  ///< PushContext::examples
};

/// How copies of a row that learn separately can be combined.
enum class CopiesOfRow : uint8_t {
  kApart,    ///< some floats are means or counts and cannot be added
  kAddUp,    ///< all floats are sums over updates; the first state, if any, sums squared gradients
  kByState,  ///< like kAddUp, but weights derive from the state: an update without gradient recomputes them
};

/// The update rule of a table's rows. State follows the weights in a row: a fixed number of floats per weight.
/// Immutable, thread-safe.
class RowOptimizer {
 public:
  virtual ~RowOptimizer() = default;
  int state_floats() const { return static_cast<int>(states_ * dim_); }
  void InitState(float* state) const { std::fill_n(state, states_ * dim_, start_); }
  /// Updates `count` distinct rows with one gradient per weight; called once per batch.
  virtual void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
                      size_t count) const = 0;
  CopiesOfRow copies() const { return copies_; }
  /// The rule and its constants, which must match a saved table: "adagrad epsilon=1e-06 initial_accumulator=0".
  virtual std::string Describe() const = 0;

 protected:
  RowOptimizer(int dim, size_t states, float start, CopiesOfRow copies)
      : dim_(static_cast<size_t>(dim)), states_(states), start_(start), copies_(copies) {}
  size_t dim() const { return dim_; }

 private:
  size_t dim_;     ///< weights per row
  size_t states_;  ///< floats of state per weight
  float start_;    ///< initial value of the state
  CopiesOfRow copies_;
};

/// `rule` with regularization of the updated rows' weights.
std::unique_ptr<RowOptimizer> MakePenalizedRows(std::unique_ptr<RowOptimizer> rule, int dim,
                                                const Regularization& penalty);
std::unique_ptr<RowOptimizer> MakeSgdRows(int dim);
std::unique_ptr<RowOptimizer> MakeAdagradRows(int dim, const AdagradDesc& desc);
/// Lazy Adam: moments of rows without a gradient do not change. Fails with kInvalidConfig for a non-lazy description.
Result<std::unique_ptr<RowOptimizer>> MakeAdamRows(int dim, const AdamDesc& desc);
std::unique_ptr<RowOptimizer> MakeFtrlRows(int dim, const FtrlDesc& desc);

/// Creates the rule of a description. Fails with kInvalidConfig without a rule, or for one that changes every row per
/// step.
Result<std::unique_ptr<RowOptimizer>> MakeRowOptimizer(const OptimizerDesc& desc, int dim);

}  // namespace millrace
