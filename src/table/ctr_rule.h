#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

class SparseAdagradSGDRuleParameter;
class SparseAdamSGDParameter;
class SparseCommonSGDRuleParameter;
class SparseNaiveSGDRuleParameter;

/// The update rule for one part of a row with counts: embed or embedx (table/ctr_rows.h).
///
/// Names, formulas and operation order are Paddle's (ps/table/sparse_sgd_rule.cc of 2.6; see docs/tables.md). Two
/// things differ: a NaN weight stays NaN, while Paddle sets it to the lower bound; and a mean over no weights, for an
/// embedx of size 0, is 0, while Paddle's is NaN. Weights and state must not be shared with other threads. Immutable,
/// thread-safe.
class CtrRule {
 public:
  /// Smallest and largest weight.
  struct Bounds {
    float least;
    float most;
    float Of(float w) const { return w < least ? least : w > most ? most : w; }
  };

  virtual ~CtrRule() = default;
  /// Floats of state after `dim` weights.
  size_t state_floats() const { return state_floats_; }
  /// New weights are uniform in [-initial_range, initial_range).
  float initial_range() const { return initial_range_; }
  virtual void StartState(float* state) const = 0;
  /// One step. `scale` is the number of shows summed in `gradient`, or 1; the Adagrad rules divide by it.
  virtual void Update(const float* gradient, float scale, float* w, float* state) const = 0;
  /// Name and settings of the rule that its state depends on: "SparseAdaGradSGDRule initial_g2sum=3".
  virtual std::string Describe() const = 0;

 protected:
  CtrRule(size_t dim, size_t state_floats, double initial_range, Bounds bounds)
      : dim_(dim), state_floats_(state_floats), initial_range_(static_cast<float>(initial_range)), bounds_(bounds) {}
  size_t dim() const { return dim_; }
  float Bounded(float w) const { return bounds_.Of(w); }

 private:
  size_t dim_;
  size_t state_floats_;
  float initial_range_;
  Bounds bounds_;
};

std::unique_ptr<CtrRule> MakeNaiveCtrRule(size_t dim, const SparseNaiveSGDRuleParameter& desc, CtrRule::Bounds bounds);
std::unique_ptr<CtrRule> MakeAdagradCtrRule(size_t dim, const SparseAdagradSGDRuleParameter& desc,
                                            CtrRule::Bounds bounds);
std::unique_ptr<CtrRule> MakeStdAdagradCtrRule(size_t dim, const SparseAdagradSGDRuleParameter& desc,
                                               CtrRule::Bounds bounds);
std::unique_ptr<CtrRule> MakeAdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, CtrRule::Bounds bounds);
std::unique_ptr<CtrRule> MakeSharedAdamCtrRule(size_t dim, const SparseAdamSGDParameter& desc, CtrRule::Bounds bounds);

/// Creates the rule named by a description, for `dim` weights. Fails with kInvalidConfig for an unknown name;
/// FindAccessorProblems (program/ctr_accessor.h) checks the rest.
Result<std::unique_ptr<CtrRule>> MakeCtrRule(const SparseCommonSGDRuleParameter& desc, size_t dim);

}  // namespace millrace
