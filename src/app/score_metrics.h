#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "metrics/metric_list.h"

namespace millrace {

/// How good scores are, where the scored lines have the label. One thread.
class ScoreMetrics {
 public:
  /// Batches are of `schema`; without a slot `label` of one value a row nothing is measured.
  ScoreMetrics(const SlotSchema& schema, const std::string& label, const MetricRegistry& registry);

  void Add(std::span<const float> scores, const SlotBatch& batch);
  /// A line: "auc 0.79  logloss 0.41  calibration 1.01 of 1000 rows" for probabilities and shares, "mae" and "rmse" for
  /// other values; all nan when a score or a label is NaN or infinite. Empty when nothing was measured.
  std::string Text() const;

 private:
  struct Measure {
    std::string name;
    std::unique_ptr<Metric> metric;
    MetricSums sums;
    bool is_of_shares;
  };

  SlotId label_;
  bool is_float_ = true;
  std::vector<Measure> measures_;
  std::vector<float> labels_;
  bool are_finite_ = true;  ///< all scores and labels are; nothing is measured once one is not
  bool are_shares_ = true;  ///< those before are from 0 to 1
  int64_t rows_ = 0;
};

}  // namespace millrace
