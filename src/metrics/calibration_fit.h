#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "kernels/calibration.h"
#include "metrics/example_rows.h"
#include "metrics/metric.h"

namespace millrace {

/// What FitCalibration reads of many examples: how often labels were 0 and 1, and the sum of predictions, in each of
/// 65,536 even steps of the prediction's logit between -16 and 16. Labels between 0 and 1 count as a part of each. How
/// examples weigh against each other counts, not how much they weigh.
std::unique_ptr<Metric> MakeCalibrationSums();

/// How near probabilities are to labels: as the metrics of these names.
struct Nearness {
  double logloss = 0;
  double calibration = 0;
};

/// A map from predictions to the share of examples that have the label 1, and what it did to those that it was taken
/// from.
struct CalibrationFit {
  float slope = 1;
  float intercept = 0;        ///< at the logit `center`
  float center = 0;           ///< not 0 where the line is so steep that digits would be lost
  std::vector<float> points;  ///< empty: of a line through the logits
  std::vector<float> values;
  Nearness before;
  Nearness after;

  CalibrationMap map() const { return {slope, intercept, points, values, center}; }
  /// At the logit 0.
  double intercept_at_0() const {
    return static_cast<double>(intercept) - static_cast<double>(slope) * static_cast<double>(center);
  }
};

/// The line through the logits whose log loss is least (Platt 1999), with his labels: a bit nearer to each other than 0
/// and 1, so that there is one where predictions part the labels, too. Of one prediction alone the slope is 1. Or
/// (`isotonic`) the values whose squares of differences from the labels are least among those that never fall where
/// predictions rise, without 0 and 1 (where all labels are alike, Laplace's share). `rows` are
/// the examples of `sums`, which are of MakeCalibrationSums, by rising prediction; without them examples of one step
/// have one prediction, their mean. kBadData without examples, or where their labels are of one class alone or
/// predictions outside 0 to 1.
Result<CalibrationFit> FitCalibration(std::span<const double> sums, std::optional<std::span<const ExampleRow>> rows,
                                      bool isotonic);

}  // namespace millrace
