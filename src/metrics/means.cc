#include <algorithm>
#include <cmath>
#include <limits>

#include "metrics/metric.h"

namespace millrace {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double RowLogLoss(double prediction, float label) {
  const double p = std::clamp(prediction, kLogLossClip, 1 - kLogLossClip);
  if (label == 1) return -std::log(p);
  if (label == 0) return -std::log(1 - p);
  const double y = std::clamp(static_cast<double>(label), 0.0, 1.0);
  return -y * std::log(p) - (1 - y) * std::log(1 - p);
}

/// Metrics computed from three sums over rows: the weight and two chosen by the metric.
class OfThreeSums : public Metric {
 public:
  int size() const final { return 3; }
  void Add(const MetricRows& rows, MetricSums& sums) const final {
    double count = 0;
    double first = 0;
    double second = 0;
    for (size_t i = 0; i < rows.predictions.size(); ++i) {
      const auto weight = static_cast<double>(rows.WeightOf(i));
      count += weight;
      first += weight * First(rows.predictions[i], rows.labels[i]);
      second += weight * Second(rows.predictions[i], rows.labels[i]);
    }
    sums.Add(0, count);
    sums.Add(1, first);
    sums.Add(2, second);
  }

 private:
  virtual double First(float prediction, float label) const = 0;
  virtual double Second(float prediction, float label) const = 0;
};

/// Metrics of the log loss of rows, from probabilities or logits.
class OfLogLosses : public OfThreeSums {
 public:
  explicit OfLogLosses(bool of_logits) : of_logits_(of_logits) {}

 private:
  double First(float prediction, float label) const override {
    const auto value = static_cast<double>(prediction);
    return RowLogLoss(of_logits_ ? 1 / (1 + std::exp(-value)) : value, label);
  }
  double Second(float, float label) const override { return label; }

  const bool of_logits_;
};

class LogLoss final : public OfLogLosses {
 public:
  using OfLogLosses::OfLogLosses;
  double Compute(std::span<const double> s) const override { return s[0] > 0 ? s[1] / s[0] : kNone; }
};

class NormalizedEntropy final : public OfLogLosses {
 public:
  using OfLogLosses::OfLogLosses;
  double Compute(std::span<const double> s) const override {
    if (s[0] <= 0) return kNone;
    const double rate = s[2] / s[0];
    if (rate <= 0 || rate >= 1) return kNone;
    return s[1] / s[0] / -(rate * std::log(rate) + (1 - rate) * std::log(1 - rate));
  }
};

class Calibration final : public OfThreeSums {
 public:
  double Compute(std::span<const double> s) const override { return s[2] > 0 ? s[1] / s[2] : kNone; }

 private:
  double First(float prediction, float) const override { return prediction; }
  double Second(float, float label) const override { return label; }
};

class Accuracy final : public OfThreeSums {
 public:
  double Compute(std::span<const double> s) const override { return s[0] > 0 ? s[1] / s[0] : kNone; }

 private:
  double First(float prediction, float label) const override { return (prediction >= 0.5f) == (label > 0.5f) ? 1 : 0; }
  double Second(float, float label) const override { return label; }
};

class MeanAbsoluteError final : public OfThreeSums {
 public:
  double Compute(std::span<const double> s) const override { return s[0] > 0 ? s[1] / s[0] : kNone; }

 private:
  double First(float prediction, float label) const override {
    return std::abs(static_cast<double>(prediction) - static_cast<double>(label));
  }
  double Second(float, float label) const override { return label; }
};

class RootMeanSquaredError final : public OfThreeSums {
 public:
  double Compute(std::span<const double> s) const override { return s[0] > 0 ? std::sqrt(s[1] / s[0]) : kNone; }

 private:
  double First(float prediction, float label) const override {
    const double error = static_cast<double>(prediction) - static_cast<double>(label);
    return error * error;
  }
  double Second(float, float label) const override { return label; }
};

}  // namespace

std::unique_ptr<Metric> MakeLogLoss() { return std::make_unique<LogLoss>(false); }
std::unique_ptr<Metric> MakeLogLossOfLogits() { return std::make_unique<LogLoss>(true); }
std::unique_ptr<Metric> MakeNormalizedEntropy() { return std::make_unique<NormalizedEntropy>(false); }
std::unique_ptr<Metric> MakeNormalizedEntropyOfLogits() { return std::make_unique<NormalizedEntropy>(true); }
std::unique_ptr<Metric> MakeCalibration() { return std::make_unique<Calibration>(); }
std::unique_ptr<Metric> MakeAccuracy() { return std::make_unique<Accuracy>(); }
std::unique_ptr<Metric> MakeMeanAbsoluteError() { return std::make_unique<MeanAbsoluteError>(); }
std::unique_ptr<Metric> MakeRootMeanSquaredError() { return std::make_unique<RootMeanSquaredError>(); }

}  // namespace millrace
