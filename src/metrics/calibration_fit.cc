#include "metrics/calibration_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "metrics/logit_buckets.h"

namespace millrace {
namespace {

constexpr size_t kSteps = 1 << 16;

// sums = by bucket: negatives, positives, predictions; then the rows, and those whose prediction is outside 0 to 1.
constexpr size_t kRows = 3 * kSteps;
constexpr size_t kOutside = kRows + 1;

class CalibrationSums final : public Metric {
 public:
  int size() const override { return kOutside + 1; }

  void Add(const MetricRows& rows, MetricSums& sums) const override {
    for (size_t i = 0; i < rows.predictions.size(); ++i) {
      const float p = rows.predictions[i];
      const auto weight = static_cast<double>(rows.WeightOf(i));
      if (!(p >= 0 && p <= 1)) {
        sums.Add(kOutside, 1);
        continue;
      }
      sums.Add(kRows, 1);
      const auto bucket = static_cast<size_t>(LogitBucket(p, kSteps));
      const double label = std::clamp(static_cast<double>(rows.labels[i]), 0.0, 1.0);
      if (label < 1) sums.Add(bucket, weight * (1 - label));
      if (label > 0) sums.Add(kSteps + bucket, weight * label);
      sums.Add(2 * kSteps + bucket, weight * static_cast<double>(p));
    }
  }
  double Compute(std::span<const double> /*sums*/) const override { return std::numeric_limits<double>::quiet_NaN(); }
};

/// Examples with equal or similar predictions.
struct Point {
  float prediction = 0;
  double logit = 0;
  double negatives = 0;
  double positives = 0;
  double predictions = 0;  ///< sum

  double weight() const { return negatives + positives; }
};

/// The examples of each prediction, ascending.
class Points {
 public:
  void Add(float prediction, double negatives, double positives, double predictions) {
    // Near 1, several steps have equal floats.
    if (points_.empty() || prediction > points_.back().prediction) {
      points_.push_back({prediction, LogitOf(prediction), negatives, positives, predictions});
      return;
    }
    points_.back().negatives += negatives;
    points_.back().positives += positives;
    points_.back().predictions += predictions;
  }
  std::vector<Point> Take() { return std::move(points_); }

 private:
  std::vector<Point> points_;
};

std::vector<Point> PointsOf(std::span<const double> sums) {
  Points points;
  for (size_t bucket = 0; bucket < kSteps; ++bucket) {
    const double negatives = sums[bucket];
    const double positives = sums[kSteps + bucket];
    const double weight = negatives + positives;
    if (!(weight > 0)) continue;
    const double predictions = sums[2 * kSteps + bucket];
    points.Add(std::clamp(static_cast<float>(predictions / weight), 0.0F, 1.0F), negatives, positives, predictions);
  }
  return points.Take();
}

std::vector<Point> PointsOf(std::span<const ExampleRow> rows) {
  Points points;
  for (const ExampleRow& row : rows) {
    const auto weight = static_cast<double>(row.weight);
    const double label = std::clamp(static_cast<double>(row.label), 0.0, 1.0);
    points.Add(row.prediction, weight * (1 - label), weight * label, weight * static_cast<double>(row.prediction));
  }
  return points.Take();
}

/// log(1 + e^x)
double SoftPlus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

/// Newton's method on a convex function of two variables, halving each step until the value decreases. Logits are
/// centered and scaled, because squares of close values would lose all digits.
class LogitLine {
 public:
  LogitLine(const std::vector<Point>& points, double negatives, double positives)
      : points_(&points),
        of_positive_((positives + 1) / (positives + 2)),
        of_negative_(1 / (negatives + 2)),
        is_one_(points.size() == 1) {
    for (const Point& point : points) center_ += point.weight() * point.logit;
    center_ /= negatives + positives;
    double squares = 0;
    for (const Point& point : points) squares += point.weight() * (point.logit - center_) * (point.logit - center_);
    if (squares > 0) width_ = std::sqrt(squares / (negatives + positives));
  }

  double center() const { return center_; }
  double width() const { return width_; }

  /// `*slope` is for scaled logits, `*intercept` at the center.
  void Fit(double* slope, double* intercept) const {
    constexpr int kMostSteps = 100;
    double cost = Cost(*slope, *intercept);
    for (int step = 0; step < kMostSteps; ++step) {
      double by_slope = 0;
      double by_intercept = 0;
      Step(*slope, *intercept, &by_slope, &by_intercept);
      double length = 1;
      double less = Cost(*slope - by_slope, *intercept - by_intercept);
      while (!(less <= cost) && length > 1e-10) {
        length /= 2;
        less = Cost(*slope - length * by_slope, *intercept - length * by_intercept);
      }
      if (!(less <= cost)) return;
      *slope -= length * by_slope;
      *intercept -= length * by_intercept;
      cost = less;
      if (std::abs(by_slope) + std::abs(by_intercept) < 1e-12) return;
    }
  }

 private:
  double X(const Point& point) const { return (point.logit - center_) / width_; }
  double Share(const Point& point) const { return point.positives * of_positive_ + point.negatives * of_negative_; }
  double Cost(double slope, double intercept) const {
    double cost = 0;
    for (const Point& point : *points_) {
      const double z = slope * X(point) + intercept;
      cost += point.weight() * SoftPlus(z) - Share(point) * z;
    }
    return cost;
  }
  void Step(double slope, double intercept, double* by_slope, double* by_intercept) const {
    double gradient[2] = {0, 0};
    double curve[3] = {0, 0, 0};  // slope and slope, slope and intercept, intercept and intercept
    for (const Point& point : *points_) {
      const double x = X(point);
      const double p = 1 / (1 + std::exp(-slope * x - intercept));
      const double error = point.weight() * p - Share(point);
      const double bend = point.weight() * p * (1 - p);
      gradient[0] += error * x;
      gradient[1] += error;
      curve[0] += bend * x * x;
      curve[1] += bend * x;
      curve[2] += bend;
    }
    // A single prediction does not determine a slope.
    constexpr double kLeast = 1e-12;
    if (is_one_) {
      *by_intercept = gradient[1] / (curve[2] + kLeast);
      return;
    }
    const double whole = (curve[0] + kLeast) * (curve[2] + kLeast) - curve[1] * curve[1];
    *by_slope = ((curve[2] + kLeast) * gradient[0] - curve[1] * gradient[1]) / whole;
    *by_intercept = ((curve[0] + kLeast) * gradient[1] - curve[1] * gradient[0]) / whole;
  }

  const std::vector<Point>* points_;
  const double of_positive_;  ///< replace the labels 1 and 0
  const double of_negative_;
  const bool is_one_;
  double center_ = 0;
  double width_ = 1;
};

/// Merges decreasing neighbors until none is left, keeping the ends of each block. If n examples with similar
/// predictions all have one label, the value is not 0 or 1 but Laplace's estimate, 1 / (n + 2) away, as far as
/// monotonicity allows.
void FitRising(const std::vector<Point>& points, CalibrationFit* fit) {
  struct Block {
    double positives = 0;
    double weight = 0;
    float first = 0;
    float last = 0;
    double value() const { return positives / weight; }
  };
  std::vector<Block> blocks;
  for (const Point& point : points) {
    Block block{point.positives, point.weight(), point.prediction, point.prediction};
    while (!blocks.empty() && blocks.back().value() >= block.value()) {
      block.positives += blocks.back().positives;
      block.weight += blocks.back().weight;
      block.first = blocks.back().first;
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    double value = block.value();
    if (value == 0 && i + 1 < blocks.size()) value = std::min(1 / (block.weight + 2), blocks[i + 1].value());
    if (value == 1 && i > 0) value = std::max(1 - 1 / (block.weight + 2), blocks[i - 1].value());
    for (const float end : {block.first, block.last}) {
      if (!fit->points.empty() && fit->points.back() == end) continue;
      fit->points.push_back(end);
      fit->values.push_back(static_cast<float>(value));
    }
  }
}

CalibrationError CalibrationErrorOf(const std::vector<Point>& points, const CalibrationMap* map) {
  double weight = 0;
  double positives = 0;
  double loss = 0;
  double predictions = 0;
  for (const Point& point : points) {
    const double of_map = map == nullptr ? 0 : static_cast<double>(Calibrated(*map, point.prediction));
    const double share = map == nullptr ? point.predictions / point.weight() : of_map;
    const double p = std::clamp(share, 1e-7, 1 - 1e-7);
    loss -= point.positives * std::log(p) + point.negatives * std::log(1 - p);
    predictions += point.weight() * share;
    positives += point.positives;
    weight += point.weight();
  }
  return {loss / weight, predictions / positives};
}

}  // namespace

std::unique_ptr<Metric> MakeCalibrationSums() { return std::make_unique<CalibrationSums>(); }

Result<CalibrationFit> FitCalibration(std::span<const double> sums, std::optional<std::span<const ExampleRow>> rows,
                                      bool isotonic) {
  if (sums[kOutside] > 0) {
    return BadData(std::to_string(static_cast<int64_t>(sums[kOutside])) +
                   " have a prediction below 0 or above 1, which is no probability");
  }
  std::vector<Point> points = rows.has_value() ? PointsOf(*rows) : PointsOf(sums);
  double negatives = 0;
  double positives = 0;
  for (const Point& point : points) {
    negatives += point.negatives;
    positives += point.positives;
  }
  if (points.empty()) return BadData("none counts: all are masked, or weigh 0");
  if (!(negatives > 0) || !(positives > 0)) {
    return BadData(std::string("all that count have the label ") + (positives > 0 ? "1" : "0") +
                   ": evaluate on some with the other, too");
  }
  // A common factor of all weights does not matter.
  const double scale = sums[kRows] / (negatives + positives);
  for (Point& point : points) {
    point.negatives *= scale;
    point.positives *= scale;
    point.predictions *= scale;
  }
  CalibrationFit fit;
  fit.before = CalibrationErrorOf(points, nullptr);
  if (isotonic) {
    FitRising(points, &fit);
  } else {
    const LogitLine line(points, scale * negatives, scale * positives);
    double slope = line.width();
    double intercept = line.center();
    line.Fit(&slope, &intercept);
    slope /= line.width();
    // Beyond this, single precision would leave less than five digits of the logit.
    constexpr double kFar = 64;
    fit.slope = static_cast<float>(slope);
    fit.center = std::abs(slope * line.center()) > kFar ? static_cast<float>(line.center()) : 0;
    const double to_center = static_cast<double>(fit.center) - line.center();
    fit.intercept = static_cast<float>(intercept + slope * to_center);
  }
  const CalibrationMap map = fit.map();
  fit.after = CalibrationErrorOf(points, &map);
  return fit;
}

}  // namespace millrace
