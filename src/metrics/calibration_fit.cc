#include "metrics/calibration_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

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

/// Examples of about the same prediction.
struct Point {
  float prediction = 0;
  double logit = 0;
  double negatives = 0;
  double positives = 0;
  double predictions = 0;  ///< sum

  double weight() const { return negatives + positives; }
};

std::vector<Point> PointsOf(std::span<const double> sums) {
  std::vector<Point> points;
  for (size_t bucket = 0; bucket < kSteps; ++bucket) {
    Point point;
    point.negatives = sums[bucket];
    point.positives = sums[kSteps + bucket];
    if (!(point.weight() > 0)) continue;
    point.predictions = sums[2 * kSteps + bucket];
    point.prediction = std::clamp(static_cast<float>(point.predictions / point.weight()), 0.0F, 1.0F);
    // Near 1 several buckets have the same floats.
    if (points.empty() || point.prediction > points.back().prediction) {
      point.logit = LogitOf(point.prediction);
      points.push_back(point);
      continue;
    }
    points.back().negatives += point.negatives;
    points.back().positives += point.positives;
    points.back().predictions += point.predictions;
  }
  return points;
}

/// log(1 + e^x)
double SoftPlus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

/// Newton's steps on a convex function of two numbers, each halved until it is less.
class LogitLine {
 public:
  LogitLine(const std::vector<Point>& points, double negatives, double positives)
      : points_(&points),
        of_positive_((positives + 1) / (positives + 2)),
        of_negative_(1 / (negatives + 2)),
        is_one_(points.size() == 1) {}

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
  double Share(const Point& point) const { return point.positives * of_positive_ + point.negatives * of_negative_; }
  double Cost(double slope, double intercept) const {
    double cost = 0;
    for (const Point& point : *points_) {
      const double z = slope * point.logit + intercept;
      cost += point.weight() * SoftPlus(z) - Share(point) * z;
    }
    return cost;
  }
  void Step(double slope, double intercept, double* by_slope, double* by_intercept) const {
    double gradient[2] = {0, 0};
    double curve[3] = {0, 0, 0};  // slope and slope, slope and intercept, intercept and intercept
    for (const Point& point : *points_) {
      const double p = 1 / (1 + std::exp(-slope * point.logit - intercept));
      const double error = point.weight() * p - Share(point);
      const double bend = point.weight() * p * (1 - p);
      gradient[0] += error * point.logit;
      gradient[1] += error;
      curve[0] += bend * point.logit * point.logit;
      curve[1] += bend * point.logit;
      curve[2] += bend;
    }
    // Of one prediction a slope says nothing.
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
  const double of_positive_;  ///< what stands for the labels 1 and 0
  const double of_negative_;
  const bool is_one_;
};

/// Neighbours that fall become one, until none falls; of each of these the ends are kept. That n examples of about one
/// prediction had one label does not make it sure: their share is Laplace's, 1 / (n + 2) away from 0 or 1, as far as
/// the values stay in order.
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

Nearness NearnessOf(const std::vector<Point>& points, const CalibrationMap* map) {
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

Result<CalibrationFit> FitCalibration(std::span<const double> sums, bool isotonic) {
  if (sums[kOutside] > 0) {
    return BadData(std::to_string(static_cast<int64_t>(sums[kOutside])) +
                   " have a prediction below 0 or above 1, which is no probability");
  }
  std::vector<Point> points = PointsOf(sums);
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
  // Weights that are all multiplied by something say the same.
  const double scale = sums[kRows] / (negatives + positives);
  for (Point& point : points) {
    point.negatives *= scale;
    point.positives *= scale;
    point.predictions *= scale;
  }
  CalibrationFit fit;
  fit.before = NearnessOf(points, nullptr);
  if (isotonic) {
    FitRising(points, &fit);
  } else {
    double slope = 1;
    double intercept = 0;
    LogitLine(points, scale * negatives, scale * positives).Fit(&slope, &intercept);
    fit.slope = static_cast<float>(slope);
    fit.intercept = static_cast<float>(intercept);
  }
  const CalibrationMap map = fit.map();
  fit.after = NearnessOf(points, &map);
  return fit;
}

}  // namespace millrace
