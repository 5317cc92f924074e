#pragma once

#include <optional>
#include <string>

#include "job/compiled_job.h"
#include "job/run_hooks.h"

namespace millrace {

/// A metric of an evaluation by its printed name, or "loss"; NaN when there is none.
double MetricOf(const EvalReport& report, const std::string& metric);
/// Which values are better of a metric of the job by its printed name, or of "loss"; nullopt when it has none such.
std::optional<MetricBetter> BetterOf(const CompiledJob& job, const std::string& metric);

/// Tells from evaluations which model was the best and when to stop.
class QualityWatch {
 public:
  /// kInvalidConfig when eval.early_stopping.metric or checkpoint.keep_best names no metric of the job, or when they
  /// name two different ones.
  static Result<QualityWatch> Create(const CompiledJob& job);

  /// Takes an evaluation into account; true when it is the best so far.
  bool IsBest(const EvalReport& report, RunState* state) const;
  /// True when the patience has run out.
  bool ShouldStop(const RunState& state) const;

 private:
  std::string metric_;  ///< empty: nothing is watched
  MetricBetter better_ = MetricBetter::kHigher;
  double min_delta_ = 0;
  int patience_ = 0;  ///< 0: never stop early
};

}  // namespace millrace
