#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "inference_model.pb.h"
#include "metrics/metric_set.h"

namespace millrace {

/// Which of a row's scores are those of a task: one, or more, of classes.
struct ScoreColumns {
  size_t first;
  size_t count;
  bool have_logits = false;  ///< Predictor::has_logit
};

/// How good scores are, where the scored lines have the label. One thread.
class ScoreMetrics {
 public:
  /// Batches are of `schema`; without the slots of the task (its label, and what examples count by), of one value a
  /// row, nothing is measured.
  ScoreMetrics(const SlotSchema& schema, const ModelTask& task, ScoreColumns columns, const MetricRegistry& registry);

  /// Adds rows of `columns` scores each, and what orders them (PredictSession::logits). Rows that do not count, and
  /// those whose weight is no weight, are left out.
  void Add(std::span<const float> scores, std::span<const float> logits, size_t columns, const SlotBatch& batch);
  /// A line, of a task with a name behind that: "auc 0.79  logloss 0.41  calibration 1.01 of 1000 rows" for
  /// probabilities and shares, "accuracy" and "logloss" for those of classes, "mae" and "rmse" for other values, with
  /// why where only labels are none; all nan when a score or a label is NaN or infinite. Lines follow of what else is
  /// to be known. Empty when nothing was measured.
  std::string Text();

 private:
  struct Measure {
    std::string name;
    std::unique_ptr<Metric> metric;
    MetricSums sums;
    bool is_of_shares;
    const MetricInfo* info;
    bool by_logit;
    ExampleRows examples;  ///< where the sums are not exact
    int64_t clipped = 0;   ///< predictions
  };

  bool is_of_classes() const { return columns_.count > 1; }
  bool IsLabel(float label) const;  ///< a share, or one of the classes
  void AddTo(Measure* measure);
  static void AddRows(const MetricRows& rows, Measure* measure);
  std::string ValueText(Measure* measure);
  /// How much a row counts; nothing where that is no weight above 0.
  std::optional<float> WeightOf(const SlotBatch& batch, size_t row, float label) const;

  /// Whether scores are from 0 to 1, and labels, too, or classes.
  bool AreShares() const { return are_likelihoods_ && !other_label_.has_value(); }

  std::string task_;
  ScoreColumns columns_;
  SlotId label_;
  SlotId weight_ = -1;
  SlotId mask_ = -1;
  std::vector<float> class_weight_;  ///< empty: labels count alike
  std::vector<Measure> measures_;
  std::vector<float> scores_;  ///< of classes all of a row, and then the next
  std::vector<float> logits_;  ///< likewise
  std::vector<float> labels_;
  std::vector<float> of_labels_;      ///< of classes: the values that a measure reads
  std::vector<float> ones_;           ///< of classes: the label of each such value
  std::vector<float> weights_;        ///< empty: each counts once
  bool are_finite_ = true;            ///< all scores and labels are; nothing is measured once one is not
  bool are_likelihoods_ = true;       ///< scores before that are from 0 to 1
  std::optional<float> other_label_;  ///< the first that is no label
  int64_t rows_ = 0;
};

}  // namespace millrace
