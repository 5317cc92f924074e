#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace millrace {

/// Predictions and labels of a batch, row by row.
struct MetricRows {
  std::span<const float> predictions;  ///< probabilities of a click, or values of a regression
  std::span<const float> labels;
  /// Positive weight of each row; empty: weight 1. Set only for metrics with MetricInfo::is_weighted.
  std::span<const float> weights = {};

  float WeightOf(size_t row) const { return weights.empty() ? 1.0F : weights[row]; }
};

/// Sums to which one thread adds while any thread can read. A concurrent reader may see a row in one sum and not yet in
/// the next; otherwise the sums are exact.
class MetricSums {
 public:
  /// `can_be_taken`: another thread can call TakeInto concurrently.
  explicit MetricSums(int size, bool can_be_taken = false)
      : sums_(static_cast<size_t>(size)), can_be_taken_(can_be_taken) {}

  /// Called only by the owning thread: a plain load, add and store, unless sums can be taken.
  void Add(size_t i, double value) {
    double now = sums_[i].load(std::memory_order_relaxed);
    if (!can_be_taken_) return sums_[i].store(now + value, std::memory_order_relaxed);
    while (!sums_[i].compare_exchange_weak(now, now + value, std::memory_order_relaxed)) {
    }
  }
  /// Adds all sums to `into` and resets them to zero.
  void TakeInto(double* into) {
    for (std::atomic<double>& sum : sums_) {
      if (sum.load(std::memory_order_relaxed) != 0) *into += sum.exchange(0, std::memory_order_relaxed);
      ++into;
    }
  }
  double Get(size_t i) const { return sums_[i].load(std::memory_order_relaxed); }
  void Set(size_t i, double value) { sums_[i].store(value, std::memory_order_relaxed); }
  size_t size() const { return sums_.size(); }
  void Clear() {
    for (std::atomic<double>& sum : sums_) sum.store(0, std::memory_order_relaxed);
  }

 private:
  std::vector<std::atomic<double>> sums_;
  bool can_be_taken_;
};

/// The labels for which a metric is defined.
enum class MetricLabels : uint8_t {
  kAny,     ///< all numbers
  kShares,  ///< from 0 to 1
  kTwo,     ///< 0 and 1; others count as the nearer one
};

/// The value that a metric reads from a prediction of more than two classes.
enum class OfClasses : uint8_t {
  kLast,      ///< the value of the last class
  kLabels,    ///< the value of the label's class; the label counts as 1
  kLikeliest  ///< 1 if the label's class has the largest value, else 0; the label counts as 1
};

/// The value of a row for kLabels and kLikeliest; 0 if the label is not a class, NaN if it or a value of the row is not
/// finite.
float ValueOfRow(OfClasses classes, std::span<const float> row, float label);

/// Which values of a metric are better.
enum class MetricBetter : uint8_t {
  kHigher,
  kLower,
  kNearerToOne,
};

/// A value as a score: larger is better for every metric. NaN is worse than everything.
double ScoreOf(MetricBetter better, double value);

/// "higher", "lower" or "nearer_to_1", as in run.json.
std::string_view WordOf(MetricBetter better);

/// A quality metric whose state is a list of sums, so threads, windows and machines merge by addition.
///
/// Stateless and thread-safe. To add one, write a class and a line in metric_list.cc, or a plugin; jobs select it with
/// `class_name`.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Number of sums.
  virtual int size() const = 0;
  /// Adds rows. Does not allocate.
  virtual void Add(const MetricRows& rows, MetricSums& sums) const = 0;
  /// Computes the value from sums; NaN if they are insufficient (no rows, or only one class for AUC).
  virtual double Compute(std::span<const double> sums) const = 0;
};

/// Area under the ROC curve from a histogram: 65,536 even steps of a probability's logit between -16 and 16, and 64
/// steps per doubling of a score outside of 0 to 1. Rows of one step count as ties, which changes the value by at most
/// AucBound; ExactAuc (example_rows.h) uses the rows themselves.
std::unique_ptr<Metric> MakeAuc();
/// The same for logits: even steps between -16 and 16.
std::unique_ptr<Metric> MakeAucOfLogits();
/// Maximum error of the value from MakeAuc's `sums`: half of the positive-negative pairs that share a step, divided by
/// all such pairs.
double AucBound(std::span<const double> sums);
/// Log losses clip predictions to this distance from 0 and 1.
inline constexpr double kLogLossClip = 1e-7;
/// Mean of -y log(p) - (1 - y) log(1 - p) with p clipped to [1e-7, 1 - 1e-7] and label y; for more than two classes, of
/// -log(p) of the label's class.
std::unique_ptr<Metric> MakeLogLoss();
/// The same for logits, with the sigmoid in double precision; likewise the next one.
std::unique_ptr<Metric> MakeLogLossOfLogits();
std::unique_ptr<Metric> MakeNormalizedEntropyOfLogits();
/// Log loss divided by the entropy of the mean label (He et al. 2014): below 1 is better than a constant.
std::unique_ptr<Metric> MakeNormalizedEntropy();
/// Sum of predictions divided by sum of labels; 1 is calibrated.
std::unique_ptr<Metric> MakeCalibration();
/// Fraction of rows whose prediction is on the label's side of 0.5; for more than two classes, whose label's class is
/// the likeliest.
std::unique_ptr<Metric> MakeAccuracy();
std::unique_ptr<Metric> MakeMeanAbsoluteError();
std::unique_ptr<Metric> MakeRootMeanSquaredError();

}  // namespace millrace
