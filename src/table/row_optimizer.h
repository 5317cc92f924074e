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

/// What changes from push to push.
struct RowStep {
  float lr = 0;
  int64_t number = 1;  ///< pushes of this table so far, with this one
  float examples = 1;  ///< PushContext::examples
};

/// What becomes of copies of a row that learn apart.
enum class CopiesOfRow : uint8_t {
  kApart,    ///< some of their floats are means, or counts: they do not add up
  kAddUp,    ///< all floats are sums over updates; the first state, if there is one, of squared gradients
  kByState,  ///< as kAddUp, and weights follow from the state: an update without a gradient makes them anew
};

/// The rule by which a table's rows learn. State lies in the row behind its weights: so many floats for each of them.
/// Immutable, thread-safe.
class RowOptimizer {
 public:
  virtual ~RowOptimizer() = default;
  int state_floats() const { return static_cast<int>(states_ * dim_); }
  void InitState(float* state) const { std::fill_n(state, states_ * dim_, start_); }
  /// Updates `count` distinct rows, each with its gradients, as many as weights; one call a batch.
  virtual void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
                      size_t count) const = 0;
  CopiesOfRow copies() const { return copies_; }
  /// The rule with its constants, which a saved table must share: "adagrad epsilon=1e-06 initial_accumulator=0".
  virtual std::string Describe() const = 0;

 protected:
  RowOptimizer(int dim, size_t states, float start, CopiesOfRow copies)
      : dim_(static_cast<size_t>(dim)), states_(states), start_(start), copies_(copies) {}
  size_t dim() const { return dim_; }

 private:
  size_t dim_;     ///< weights of a row
  size_t states_;  ///< for each weight
  float start_;    ///< what they all start from
  CopiesOfRow copies_;
};

/// `rule` with penalties on the weights of the rows that it updates.
std::unique_ptr<RowOptimizer> MakePenalizedRows(std::unique_ptr<RowOptimizer> rule, int dim,
                                                const Regularization& penalty);
std::unique_ptr<RowOptimizer> MakeSgdRows(int dim);
std::unique_ptr<RowOptimizer> MakeAdagradRows(int dim, const AdagradDesc& desc);
/// The moments of rows without a gradient stay as they are; kInvalidConfig for a rule that is not lazy.
Result<std::unique_ptr<RowOptimizer>> MakeAdamRows(int dim, const AdamDesc& desc);
std::unique_ptr<RowOptimizer> MakeFtrlRows(int dim, const FtrlDesc& desc);

/// The rule that a description names; kInvalidConfig when it names none, or one that moves every row.
Result<std::unique_ptr<RowOptimizer>> MakeRowOptimizer(const OptimizerDesc& desc, int dim);

}  // namespace millrace
