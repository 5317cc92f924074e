#pragma once

#include <string>

#include "trainer/job.h"
#include "trainer/run_hooks.h"

namespace millrace {

/// A metric of an evaluation by its printed name, or "loss"; NaN when there is none.
double MetricOf(const EvalReport& report, const std::string& metric);
/// The value of a metric as a score: larger is better, whatever the metric.
double ScoreOf(const std::string& metric, double value);

/// Tells from evaluations which model was the best and when to stop.
class QualityWatch {
 public:
  /// kInvalidConfig when eval.early_stopping.metric or checkpoint.keep_best names no metric of the job, or when they
  /// name two different ones.
  static Result<QualityWatch> Create(const Job& job);

  /// Takes an evaluation into account; true when it is the best so far.
  bool IsBest(const EvalReport& report, RunState* state) const;
  /// True when the patience has run out.
  bool ShouldStop(const RunState& state) const;

 private:
  std::string metric_;  ///< empty: nothing is watched
  double min_delta_ = 0;
  int patience_ = 0;  ///< 0: never stop early
};

}  // namespace millrace
