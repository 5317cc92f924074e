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

float ValueOfRow(OfClasses classes, std::span<const float> row, float label) {
  const auto is_odd = [](float value) { return IsNonFinite(value); };
  if (is_odd(label) || std::any_of(row.begin(), row.end(), is_odd)) return std::numeric_limits<float>::quiet_NaN();
  if (label < 0 || label >= static_cast<float>(row.size()) || label != std::floor(label)) return 0;
  const auto at = row.begin() + static_cast<std::ptrdiff_t>(label);
  if (classes == OfClasses::kLabels) return *at;
  return at == std::max_element(row.begin(), row.end()) ? 1 : 0;  // of equals the first, as argmax has it
}

Status RegisterBuiltinMetrics(MetricRegistry& registry) {
  using enum MetricLabels;
  using enum MetricBetter;
  using enum OfClasses;
  MR_TRY(registry.Add("AUC", "area under the ROC curve",
                      {kTwo, kHigher, MakeAuc, true, kLast, ExactAuc, AucBound, MakeAucOfLogits}));
  MR_TRY(registry.Add(
      "LOGLOSS", "mean negative log likelihood",
      {kShares, kLower, MakeLogLoss, true, kLabels, nullptr, nullptr, MakeLogLossOfLogits, kLogLossClip, true}));
  MR_TRY(registry.Add("NORMALIZED_ENTROPY", "log loss over the entropy of the mean label",
                      {kShares, kLower, MakeNormalizedEntropy, true, kLast, nullptr, nullptr,
                       MakeNormalizedEntropyOfLogits, kLogLossClip, true}));
  MR_TRY(registry.Add("CALIBRATION", "sum of predictions over sum of labels",
                      {kAny, kNearerToOne, MakeCalibration, true}));
  MR_TRY(registry.Add("ACCURACY", "share of predictions on the label's side",
                      {kTwo, kHigher, MakeAccuracy, true, kLikeliest, nullptr, nullptr, nullptr, 0, true}));
  MR_TRY(registry.Add("GAUC", "AUC within groups", {kTwo, kHigher, nullptr, true}));
  MR_TRY(registry.Add("MAE", "mean absolute error", {kAny, kLower, MakeMeanAbsoluteError, true}));
  return registry.Add("RMSE", "root of the mean squared error", {kAny, kLower, MakeRootMeanSquaredError, true});
}

}  // namespace millrace
