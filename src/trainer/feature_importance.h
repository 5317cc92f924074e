#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "job/job_session.h"

namespace millrace {

/// What a group of slots is worth: how much worse the metric is when their features are those of other rows.
struct FeatureImportance {
  std::string name;
  std::vector<double> values;  ///< the metric with the group's features shuffled, a repeat each
  double drop = 0;             ///< mean loss of quality; above 0: the group helps
  double deviation = 0;        ///< standard deviation over repeats; NaN with one
  double error = 0;            ///< of the mean: deviation / sqrt(repeats)
};

/// The answer to feature_importance.
struct ImportanceReport {
  std::string metric;
  MetricBetter better = MetricBetter::kHigher;  ///< of the metric
  double baseline = 0;                          ///< with every row's own features
  int64_t examples = 0;                         ///< evaluated, each repeat
  int repeats = 0;
  double seconds = 0;
  std::vector<FeatureImportance> groups;  ///< the most important first
};

/// Checks, before anything is trained, that the job computes the metric that feature_importance asks for.
Status CheckFeatureImportance(const CompiledJob& job);

/// Evaluates the job's model on its evaluation files, held in memory, once as they are and then `repeats` times for
/// each slot or group with its features replaced by those of other rows. Repeats differ by seed and are the same in
/// every run; every group meets the same donors. Writes no parameter. kCancelled at a stop request.
Result<ImportanceReport> MeasureFeatureImportance(JobSession& session, std::stop_token stop);

/// feature_importance.json.
std::string ImportanceJson(const ImportanceReport& report);

/// A table for people.
std::string ImportanceTable(const ImportanceReport& report);

}  // namespace millrace
