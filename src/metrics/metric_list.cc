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
  MR_TRY(registry.Add("AUC", "area under the ROC curve", {"auc", kTwo, kHigher, MakeAuc}));
  MR_TRY(registry.Add("LOGLOSS", "mean negative log likelihood", {"logloss", kShares, kLower, MakeLogLoss}));
  MR_TRY(registry.Add("NORMALIZED_ENTROPY", "log loss over the entropy of the mean label",
                      {"normalized_entropy", kShares, kLower, MakeNormalizedEntropy}));
  MR_TRY(registry.Add("CALIBRATION", "sum of predictions over sum of labels",
                      {"calibration", kAny, kNearerToOne, MakeCalibration}));
  MR_TRY(
      registry.Add("ACCURACY", "share of predictions on the label's side", {"accuracy", kTwo, kHigher, MakeAccuracy}));
  MR_TRY(registry.Add("GAUC", "AUC within groups", {"gauc", kTwo, kHigher, nullptr}));
  MR_TRY(registry.Add("MAE", "mean absolute error", {"mae", kAny, kLower, MakeMeanAbsoluteError}));
  return registry.Add("RMSE", "root of the mean squared error", {"rmse", kAny, kLower, MakeRootMeanSquaredError});
}

}  // namespace millrace
