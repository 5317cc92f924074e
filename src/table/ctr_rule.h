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

/// The rule by which one part of a row of a table with counts learns: embed or embedx (table/ctr_rows.h).
///
/// Names, formulas and the order of their operations are those of Paddle (ps/table/sparse_sgd_rule.cc of 2.6, in the
/// words of docs/tables.md). Two things differ: a weight that is NaN stays NaN, where Paddle makes it the lower bound;
/// and means over no weights, of an embedx of 0, are 0, where Paddle's are NaN. Weights and state are copies that
/// belong to the caller alone. Immutable, thread-safe.
class CtrRule {
 public:
  /// The least and the largest weight.
  struct Bounds {
    float least;
    float most;
    float Of(float w) const { return w < least ? least : w > most ? most : w; }
  };

  virtual ~CtrRule() = default;
  /// Floats of state behind `dim` weights.
  size_t state_floats() const { return state_floats_; }
  /// New weights are uniform in [-initial_range, initial_range).
  float initial_range() const { return initial_range_; }
  virtual void StartState(float* state) const = 0;
  /// One step. `scale` is the number of shows that `gradient` is a sum over, or 1; the adagrads divide by it.
  virtual void Update(const float* gradient, float scale, float* w, float* state) const = 0;
  /// Its name with the settings that its state was made with: "SparseAdaGradSGDRule initial_g2sum=3".
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

/// The rule that a description names, for `dim` weights; kInvalidConfig when there is none. FindAccessorProblems
/// (program/ctr_accessor.h) says what else may be wrong with it.
Result<std::unique_ptr<CtrRule>> MakeCtrRule(const SparseCommonSGDRuleParameter& desc, size_t dim);

}  // namespace millrace
