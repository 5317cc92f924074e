#include "metrics/metric_list.h"

#include <cmath>
#include <limits>

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

Status RegisterBuiltinMetrics(MetricRegistry& registry) {
  using enum MetricLabels;
  using enum MetricBetter;
  MR_TRY(registry.Add("AUC", "area under the ROC curve", {kTwo, kHigher, MakeAuc, true}));
  MR_TRY(registry.Add("LOGLOSS", "mean negative log likelihood", {kShares, kLower, MakeLogLoss, true}));
  MR_TRY(registry.Add("NORMALIZED_ENTROPY", "log loss over the entropy of the mean label",
                      {kShares, kLower, MakeNormalizedEntropy, true}));
  MR_TRY(registry.Add("CALIBRATION", "sum of predictions over sum of labels",
                      {kAny, kNearerToOne, MakeCalibration, true}));
  MR_TRY(registry.Add("ACCURACY", "share of predictions on the label's side", {kTwo, kHigher, MakeAccuracy, true}));
  MR_TRY(registry.Add("GAUC", "AUC within groups", {kTwo, kHigher, nullptr, true}));
  MR_TRY(registry.Add("MAE", "mean absolute error", {kAny, kLower, MakeMeanAbsoluteError, true}));
  return registry.Add("RMSE", "root of the mean squared error", {kAny, kLower, MakeRootMeanSquaredError, true});
}

}  // namespace millrace
