#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "kernels/racy.h"

namespace millrace {

class OptimizerDesc;

/// What changes from push to push.
struct RowStep {
  float lr = 0;
  int64_t number = 1;  ///< pushes of this table so far, with this one
};

/// The rule by which a table's rows learn. State lies in the row behind its `dim` weights. Immutable, thread-safe.
class RowOptimizer {
 public:
  virtual ~RowOptimizer() = default;
  virtual int state_floats() const = 0;
  virtual void InitState(float* state) const = 0;
  /// Updates `count` distinct rows, each with its `dim` gradients; one call a batch.
  virtual void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
                      size_t count) const = 0;
  /// The rule with its constants, which a saved table must share: "adagrad epsilon=1e-06 initial_accumulator=0".
  virtual std::string Describe() const = 0;
};

std::unique_ptr<RowOptimizer> MakeSgdRows(int dim);
std::unique_ptr<RowOptimizer> MakeAdagradRows(int dim, float epsilon, float initial_accumulator);
/// Lazy: the moments of rows without a gradient stay as they are.
std::unique_ptr<RowOptimizer> MakeAdamRows(int dim, float beta1, float beta2, float epsilon);
/// Rates fall with the `power` of the sum of squares; -0.5 is its root.
std::unique_ptr<RowOptimizer> MakeFtrlRows(int dim, float beta, float l1, float l2, float power);

/// The rule that a description names; kInvalidConfig when it names none.
Result<std::unique_ptr<RowOptimizer>> MakeRowOptimizer(const OptimizerDesc& desc, int dim);

}  // namespace millrace
