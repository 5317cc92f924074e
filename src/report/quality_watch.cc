#include "report/quality_watch.h"

#include <cmath>
#include <limits>

namespace millrace {

Result<QualityWatch> QualityWatch::Create(const CompiledJob& job) {
  QualityWatch watch;
  const TrainerDesc& desc = job.desc();
  const bool stops = desc.eval().has_early_stopping();
  const std::string& keep_best = desc.checkpoint().keep_best();
  if (!stops && keep_best.empty()) return watch;
  watch.metric_ = stops ? desc.eval().early_stopping().metric() : keep_best;
  const std::optional<MetricBetter> better = BetterOf(job, watch.metric_);
  if (!better.has_value()) {
    std::string known = job.loss().empty() ? "" : "loss";
    for (const std::string& name : job.metrics().names()) known += (known.empty() ? "" : ", ") + name;
    return InvalidConfig((stops ? "eval.early_stopping.metric" : "checkpoint.keep_best") +
                         (": the job has no metric \"" + watch.metric_) + "\"; it has: " + known);
  }
  watch.better_ = *better;
  if (stops) {
    watch.patience_ = desc.eval().early_stopping().patience();
    watch.min_delta_ = desc.eval().early_stopping().min_delta();
  }
  return watch;
}

double MetricOf(const EvalReport& report, const std::string& metric) {
  if (metric == "loss") return report.loss;
  for (const auto& [name, value] : report.metrics) {
    if (name == metric) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::optional<MetricBetter> BetterOf(const CompiledJob& job, const std::string& metric) {
  if (metric == "loss" && !job.loss().empty()) return MetricBetter::kLower;
  return job.metrics().Better(metric);
}

bool QualityWatch::IsBest(const EvalReport& report, RunState* state) const {
  if (metric_.empty()) return false;
  const double score = ScoreOf(better_, MetricOf(report, metric_));
  // What has no value is no best, the first evaluation neither.
  const bool best = std::isfinite(score) && (!state->has_best || score > state->best_metric + min_delta_);
  state->evaluations_since_best = best ? 0 : state->evaluations_since_best + 1;
  if (best) state->best_metric = score;
  state->has_best = state->has_best || best;
  return best;
}

bool QualityWatch::ShouldStop(const RunState& state) const {
  return patience_ > 0 && state.evaluations_since_best >= patience_;
}

}  // namespace millrace
