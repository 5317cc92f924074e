#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace millrace {

/// Predictions of a batch and what they should have been, row by row.
struct MetricRows {
  std::span<const float> predictions;  ///< probabilities of a click, or values of a regression
  std::span<const float> labels;
  /// How much each row counts, above 0; empty: every row once. Only a metric that says so (MetricInfo::is_weighted)
  /// has any.
  std::span<const float> weights = {};

  float WeightOf(size_t row) const { return weights.empty() ? 1.0F : weights[row]; }
};

/// Sums that one thread adds to and any thread may read meanwhile. Reading while another adds may see a row in one sum
/// and not yet in the next; at rest the sums are exact.
class MetricSums {
 public:
  /// `can_be_taken`: another thread may call TakeInto meanwhile.
  explicit MetricSums(int size, bool can_be_taken = false)
      : sums_(static_cast<size_t>(size)), can_be_taken_(can_be_taken) {}

  /// By the owning thread alone: a plain load, add and store, unless sums can be taken.
  void Add(size_t i, double value) {
    double now = sums_[i].load(std::memory_order_relaxed);
    if (!can_be_taken_) return sums_[i].store(now + value, std::memory_order_relaxed);
    while (!sums_[i].compare_exchange_weak(now, now + value, std::memory_order_relaxed)) {
    }
  }
  /// Adds all sums to `into`, and leaves zeros.
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

/// Which labels a measure is defined for.
enum class MetricLabels : uint8_t {
  kAny,     ///< every number
  kShares,  ///< from 0 to 1
  kTwo,     ///< 0 and 1; others are taken as the one that they are nearer to
};

/// What a measure reads of a row whose prediction is of more than two classes.
enum class OfClasses : uint8_t {
  kLast,      ///< the value of the last one
  kLabels,    ///< that of the label's class; the label counts as 1
  kLikeliest  ///< 1 where the label's class has the largest value, else 0; the label counts as 1
};

/// The value of a row for kLabels and kLikeliest; 0 where the label is no class, NaN where it or a value of the row is
/// NaN or infinite.
float ValueOfRow(OfClasses classes, std::span<const float> row, float label);

/// Which of a measure's values is the better one.
enum class MetricBetter : uint8_t {
  kHigher,
  kLower,
  kNearerToOne,
};

/// A value as a score: larger is better, whatever the measure. NaN is worse than everything.
double ScoreOf(MetricBetter better, double value);

/// "higher", "lower" or "nearer_to_1", as in run.json.
std::string_view WordOf(MetricBetter better);

/// A quality measure whose state is a list of sums, so that threads, windows and machines merge by adding.
///
/// Stateless and thread-safe. A new one is a class and a line in metric_list.cc, or a plugin's; jobs name it by
/// `class_name`.
class Metric {
 public:
  virtual ~Metric() = default;
  /// How many sums it keeps.
  virtual int size() const = 0;
  /// Adds rows. Allocates nothing.
  virtual void Add(const MetricRows& rows, MetricSums& sums) const = 0;
  /// The value that sums stand for; NaN when they hold too little (no rows, or one class alone for AUC).
  virtual double Compute(std::span<const double> sums) const = 0;
};

/// Area under the ROC curve from a histogram: 65,536 even steps of a probability's logit between -16 and 16, and 64
/// steps for each doubling of a score outside of 0 to 1. Rows of one step count as ties, which moves the value by
/// AucBound at most; ExactAuc (example_rows.h) is that of the rows themselves.
std::unique_ptr<Metric> MakeAuc();
/// The same of logits: even steps between -16 and 16.
std::unique_ptr<Metric> MakeAucOfLogits();
/// How far the value of MakeAuc's `sums` may be from the exact one: half of the pairs of a positive and a negative that
/// share a step, of all pairs.
double AucBound(std::span<const double> sums);
/// How near to 0 and 1 log losses take predictions to be at most.
inline constexpr double kLogLossClip = 1e-7;
/// Mean of -y log(p) - (1 - y) log(1 - p) with p kept within [1e-7, 1 - 1e-7], y the label; of more than two classes of
/// -log(p) of the label's.
std::unique_ptr<Metric> MakeLogLoss();
/// The same of logits, whose sigmoid is taken in double precision, as the next.
std::unique_ptr<Metric> MakeLogLossOfLogits();
std::unique_ptr<Metric> MakeNormalizedEntropyOfLogits();
/// Log loss over the entropy of the mean label (He et al. 2014): below 1 is better than a constant.
std::unique_ptr<Metric> MakeNormalizedEntropy();
/// Sum of predictions over sum of labels; 1 is calibrated.
std::unique_ptr<Metric> MakeCalibration();
/// Share of rows whose prediction is on the label's side of 0.5; of more than two classes of those whose label's class
/// is the likeliest.
std::unique_ptr<Metric> MakeAccuracy();
std::unique_ptr<Metric> MakeMeanAbsoluteError();
std::unique_ptr<Metric> MakeRootMeanSquaredError();

}  // namespace millrace
