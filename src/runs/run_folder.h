#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "metrics/metric.h"

namespace millrace {

class TrainerDesc;

/// A value after a step; NaN where it had none.
struct CurvePoint {
  int64_t step = 0;
  double value = 0;
};

/// What a run was seen to be under one name, in the order of its steps.
struct Curve {
  std::string name;  ///< "auc", "income/auc", a variable that was fetched
  std::vector<CurvePoint> points;
};

/// What the output folder of a training holds about it.
struct RunRecord {
  std::string name;        ///< what it is shown as; the folder as it was given
  std::string folder;      ///< without a slash at its end
  bool has_ended = false;  ///< it has a run.json; else what that would say is not known
  bool interrupted = false;
  bool stopped_early = false;
  /// The job as it ran; null where the folder does not say.
  std::shared_ptr<const TrainerDesc> job;
  int64_t steps = 0;
  int64_t model_step = -1;  ///< after which the saved model was evaluated; -1: not known
  int64_t examples = 0;
  double examples_per_second = 0;                       ///< NaN: not known
  double seconds = 0;                                   ///< of training; NaN: not known
  std::vector<std::pair<std::string, double>> metrics;  ///< of training's last epoch
  std::map<std::string, MetricBetter> better;           ///< which values of an evaluation's metric are better
  std::vector<Curve> training;                          ///< of metrics.jsonl, in the order in which names come
  std::vector<Curve> evaluations;                       ///< likewise, with "loss"
  /// What is missing or cut, a sentence each with the file, and the line where there is one.
  std::vector<std::string> notes;

  const Curve* Evaluation(const std::string& metric) const;
};

/// Reads run.json and metrics.jsonl of a run's output folder; of a run that has not ended, the latter alone. A last
/// line that is cut, as a killed run leaves it, is a note. kNotFound where the folder is none or holds no run; kIo for
/// a file that cannot be read; kBadData, with the file, and the line of metrics.jsonl, for a text that no run wrote.
Result<RunRecord> ReadRun(const std::string& folder);

}  // namespace millrace
