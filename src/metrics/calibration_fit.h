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

/// Sums for FitCalibration over many examples: counts of labels 0 and 1, and the sum of predictions, in each of 65,536
/// even steps of the prediction's logit between -16 and 16. Labels between 0 and 1 count partly for both. Only ratios
/// of weights matter.
std::unique_ptr<Metric> MakeCalibrationSums();

/// The log loss and calibration of predictions, as in the metrics with these names.
struct CalibrationError {
  double logloss = 0;
  double calibration = 0;
};

/// A map from predictions to the frequency of label 1, and its effect on the examples it was fitted to.
struct CalibrationFit {
  float slope = 1;
  float intercept = 0;        ///< at the logit `center`
  float center = 0;           ///< not 0 if the line is so steep that precision would be lost
  std::vector<float> points;  ///< empty: a line through the logits
  std::vector<float> values;
  CalibrationError before;
  CalibrationError after;

  CalibrationMap map() const { return {slope, intercept, points, values, center}; }
  /// At the logit 0.
  double intercept_at_0() const {
    return static_cast<double>(intercept) - static_cast<double>(slope) * static_cast<double>(center);
  }
};

/// Fits Platt scaling (Platt 1999): the line through the logits with the least log loss, with labels slightly closer
/// than 0 and 1, so that it exists even if predictions separate the labels. For a single distinct prediction the slope
/// is 1. With `isotonic`, fits isotonic regression: the non-decreasing least-squares fit, without the values 0 and 1
/// (Laplace's estimate if all labels of a block are equal). `rows` are the examples of `sums` (from
/// MakeCalibrationSums) by ascending prediction; without them, all examples of a step get their mean prediction. Fails
/// with kBadData without examples, with labels of only one class, or with predictions outside 0 to 1.
Result<CalibrationFit> FitCalibration(std::span<const double> sums, std::optional<std::span<const ExampleRow>> rows,
                                      bool isotonic);

}  // namespace millrace
