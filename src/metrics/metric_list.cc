#include "metrics/metric_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/non_finite.h"

namespace millrace {

double ScoreOf(MetricBetter better, double value) {
  if (std::isnan(value)) return -std::numeric_limits<double>::infinity();
  switch (better) {
    case MetricBetter::kHigher: return value;
    case MetricBetter::kLower: return -value;
    case MetricBetter::kNearerToOne: return -std::abs(value - 1);
  }
  return value;
}

std::string_view WordOf(MetricBetter better) {
  switch (better) {
    case MetricBetter::kHigher: return "higher";
    case MetricBetter::kLower: return "lower";
    case MetricBetter::kNearerToOne: return "nearer_to_1";
  }
  return "";
}

float ValueOfRow(OfClasses classes, std::span<const float> row, float label) {
  const auto is_odd = [](float value) { return IsNonFinite(value); };
  if (is_odd(label) || std::any_of(row.begin(), row.end(), is_odd)) return std::numeric_limits<float>::quiet_NaN();
  if (label < 0 || label >= static_cast<float>(row.size()) || label != std::floor(label)) return 0;
  const auto at = row.begin() + static_cast<std::ptrdiff_t>(label);
  if (classes == OfClasses::kLabels) return *at;
  return at == std::max_element(row.begin(), row.end()) ? 1 : 0;  // the first of equal values, like argmax
}

Status RegisterBuiltinMetrics(MetricRegistry& registry) {
  using enum MetricLabels;
  using enum MetricBetter;
  using enum OfClasses;
  using enum MetricReads;
  MR_TRY(registry.Add("AUC", "area under the ROC curve",
                      {.labels = kTwo,
                       .better = kHigher,
                       .make = MakeAuc,
                       .is_weighted = true,
                       .exact = ExactAuc,
                       .bound = AucBound,
                       .of_logits = MakeAucOfLogits}));
  MR_TRY(registry.Add("LOGLOSS", "mean negative log likelihood",
                      {.labels = kShares,
                       .better = kLower,
                       .make = MakeLogLoss,
                       .is_weighted = true,
                       .of_classes = kLabels,
                       .of_logits = MakeLogLossOfLogits,
                       .clipped_at = kLogLossClip,
                       .reads = kProbabilitiesOnly}));
  MR_TRY(registry.Add("NORMALIZED_ENTROPY", "log loss over the entropy of the mean label",
                      {.labels = kShares,
                       .better = kLower,
                       .make = MakeNormalizedEntropy,
                       .is_weighted = true,
                       .of_logits = MakeNormalizedEntropyOfLogits,
                       .clipped_at = kLogLossClip,
                       .reads = kProbabilitiesOnly}));
  MR_TRY(registry.Add("CALIBRATION", "sum of predictions over sum of labels",
                      {.better = kNearerToOne, .make = MakeCalibration, .is_weighted = true, .reads = kProbability}));
  MR_TRY(registry.Add("ACCURACY", "share of predictions on the label's side",
                      {.labels = kTwo,
                       .better = kHigher,
                       .make = MakeAccuracy,
                       .is_weighted = true,
                       .of_classes = kLikeliest,
                       .reads = kProbabilitiesOnly}));
  MR_TRY(registry.Add("GAUC", "AUC within groups", {.labels = kTwo, .better = kHigher, .is_weighted = true}));
  MR_TRY(registry.Add("MAE", "mean absolute error",
                      {.better = kLower, .make = MakeMeanAbsoluteError, .is_weighted = true}));
  return registry.Add("RMSE", "root of the mean squared error",
                      {.better = kLower, .make = MakeRootMeanSquaredError, .is_weighted = true});
}

}  // namespace millrace
