#pragma once

#include <deque>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batch/label_range_monitor.h"
#include "batch/slot_batch.h"
#include "metrics/group_sample.h"
#include "metrics/metric_list.h"
#include "model/metric_spec.h"
#include "runtime/frame.h"
#include "runtime/transfer.h"

namespace millrace {

/// Metric values by printed name, in the model's order.
using MetricValues = std::vector<std::pair<std::string, double>>;

/// Accumulated state of a job's metrics, for some threads and some time; totals merge by addition. Created by
/// MetricSet.
struct MetricTotals {
  /// The sums of each metric, then of the loss. Then, per metric: rows that are not finite and in no other sum; rows
  /// without a group or with a clipped prediction; rows whose prediction is not a probability.
  std::vector<double> sums;
  std::vector<GroupSample> samples;  ///< samples for GAUC; empty if not needed
  /// For metrics whose sums are not exact; empty if not needed.
  std::vector<ExampleRows> examples = {};
};

/// Remarks about metric values.
struct MetricRemarks {
  /// Maximum errors of values computed from sums, by printed name.
  MetricValues bounds;
  /// One line each, "gauc: 3 examples ...", with a key that is constant over measurements.
  std::vector<std::pair<std::string, std::string>> lines;
};

/// Number of `predictions` that a metric clips (MetricInfo::clipped_at), and the message for it.
int64_t ClippedRows(const MetricInfo& info, std::span<const float> predictions, bool are_logits);
std::string ClippedText(const std::string& name, const MetricInfo& info, int64_t rows);

/// Smaller bounds are not reported.
inline constexpr double kLeastBound = 1e-4;

/// "0.712345", followed by " +- 0.0123" if `bounds` has more than kLeastBound for `name`; "nan" has no sign.
std::string MetricText(const std::string& name, double value, const MetricValues& bounds);

/// The metrics of a job and the locations of their inputs; shared by all workers, immutable.
class MetricSet {
 public:
  /// `loss` is the variable of the loss, whose mean is also computed; empty or unknown to a frame: no loss. Fails with
  /// kInvalidConfig for an unknown slot, a kind that is not in `registry`, or an unweighted metric of a weighted loss.
  static Result<std::unique_ptr<const MetricSet>> Create(const std::vector<MetricSpec>& specs, const SlotSchema& schema,
                                                         const MetricRegistry& registry, const std::string& loss);

  /// Printed names, "auc" or "income/auc"; a second metric with the same name gets "_2".
  const std::vector<std::string>& names() const { return names_; }
  /// Which values of a metric, given by printed name, are better; nullopt if there is no such metric.
  std::optional<MetricBetter> Better(std::string_view name) const;
  /// The variables of predictions and weights, without the loss.
  std::vector<std::string> Variables() const;
  /// Totals without rows.
  MetricTotals NewTotals() const;
  /// Totals without rows and without samples: sufficient for all metrics except GAUC.
  MetricTotals NewSums() const { return {std::vector<double>(sums_), {}, {}}; }
  /// Computes all values; sorts the samples.
  MetricValues Compute(MetricTotals& totals) const;
  /// The value of metric `index`; NaN if a row's prediction or label was not finite. For GAUC, `totals` must have the
  /// sample, which is sorted.
  double Value(size_t index, MetricTotals& totals) const;
  /// The sums of metric `index`, which is not GAUC; empty if a row's prediction or label was not finite.
  std::span<const double> Sums(size_t index, const MetricTotals& totals) const;
  /// The sorted examples of metric `index`; nullopt unless all are stored.
  std::optional<std::span<const ExampleRow>> Examples(size_t index, MetricTotals& totals) const;
  /// Maximum error of the value of metric `index`; 0: exact.
  double Bound(size_t index, const MetricTotals& totals) const;
  /// Remarks on the first metrics, given their `values` from `totals`, which must have the samples of GAUC.
  MetricRemarks Remarks(const MetricValues& values, const MetricTotals& totals) const;
  /// Number of metrics with SharedExamples.
  size_t exact_metrics() const { return exact_; }
  /// Mean of the loss over rows; NaN without rows.
  double Loss(const MetricTotals& totals) const;
  /// Whether metric `index` is computed from a sample.
  bool IsGrouped(size_t index) const { return entries_[index].metric == nullptr; }
  /// Number of rows with non-finite predictions or labels; the maximum over metrics.
  int64_t NonFiniteRows(const MetricTotals& totals) const;
  /// Adds totals of other rows to `*all`.
  static void Add(const MetricTotals& totals, MetricTotals* all);
  /// Writes totals to a checkpoint.
  static void Write(const MetricTotals& totals, std::ostream& out);
  /// Reads the bytes of Write; nullopt for totals of other metrics.
  std::optional<MetricTotals> FromBytes(std::string_view bytes) const;
  /// Like FromBytes for the front of `bytes`, which it removes.
  std::optional<MetricTotals> TakeBytes(std::string_view* bytes) const;

 private:
  friend class MetricAccumulator;
  struct Entry {
    std::unique_ptr<Metric> metric;  ///< null: GAUC
    std::string prediction;
    std::string weights;  ///< empty: weight 1
    SlotId label = -1;
    SlotId group = -1;
    MetricLabels looks_for = MetricLabels::kAny;  ///< also kAny if another entry checks the same labels
    size_t first = 0;                             ///< index of its first sum; for GAUC, of its sample
    MetricInfo info;
    bool by_logit = false;  ///< `prediction` is a logit
    size_t examples = 0;    ///< index among the metrics whose sums are not exact
  };
  /// Row counts per metric, contiguous in the sums.
  enum Counts : size_t { kNonFinite, kNoted, kOutside, kCounts };
  double CountOf(Counts kind, size_t metric, const MetricTotals& totals) const {
    return totals.sums[counts_ + kind * entries_.size() + metric];
  }
  /// Why a metric is NaN; empty if other output explains it.
  std::string WhyNone(size_t index, const MetricTotals& totals) const;
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
  std::string loss_;
  size_t sums_ = 0;
  size_t loss_sums_ = 0;  ///< index in the sums of the loss's: loss times rows, rows
  size_t counts_ = 0;     ///< index in the sums of the first row count
  size_t exact_ = 0;
  std::vector<GroupSample> no_samples_;  ///< empty samples
};

/// Options of a MetricAccumulator.
struct AccumulatorOptions {
  LabelRangeMonitor* label_monitor = nullptr;  ///< receives labels for which a metric is undefined; null: not checked
  SharedExamples* examples = nullptr;          ///< receives the examples of exact metrics; null: none
  bool has_windows = false;                    ///< windows are needed for metrics other than GAUC
};

/// Reads predictions and labels of one worker's batches and keeps its sums.
///
/// The worker calls Add; one other thread can call AddTo and the window functions concurrently. Allocates for a batch
/// larger than all before. With GAUC or examples, Add locks for the duration of a batch; rows of GAUC are kept until
/// MoveRowsTo.
class MetricAccumulator {
 public:
  /// `frame` must have the predictions; both must outlive the accumulator, like the pointers in `options`. Fails with
  /// kInvalidConfig if a prediction or weight is missing or is not a tensor.
  static Result<std::unique_ptr<MetricAccumulator>> Create(const MetricSet& set, const Frame& frame,
                                                           const AccumulatorOptions& options = {});

  /// Adds the rows of context.batch, which the frame just ran. Ignores a loss that is not a float. Fails with
  /// kInvalidConfig if a prediction does not have one value (or two or more classes) per row or weights have another
  /// shape, and with the device's failure.
  Status Add(const RunContext& context);
  /// Stores the input of Add for AddKept, for batches that count only after others have run. context.batch must outlive
  /// that. Fails like Add.
  Status Keep(const RunContext& context);
  /// Adds the stored batches and removes them. Fails like Add.
  Status AddKept();
  /// Adds this worker's totals to `totals`, except for moved rows. Copies rows if `totals` has samples.
  void AddTo(MetricTotals& totals) const;
  /// Like AddTo, but moves the rows, including the window's. Requires that the worker is paused.
  void EndInto(MetricTotals& totals);
  /// Moves the rows of taken windows to the samples of `totals`. The worker does not wait for it.
  void MoveRowsTo(MetricTotals& totals);
  /// Adds everything since the last call (or the start) to `window` and starts the next window. Copies the window's
  /// rows if `window` has samples.
  void TakeWindow(MetricTotals& window);
  /// Adds the current window like TakeWindow, without ending it.
  void AddWindowTo(MetricTotals& window) const;
  /// Starts from totals of an earlier run.
  void Restore(const MetricTotals& totals);
  void Clear();

 private:
  MetricAccumulator(const MetricSet& set, const AccumulatorOptions& options)
      : set_(&set), options_(options), samples_(set.no_samples_) {}
  /// A batch and copies of its results in the frame.
  struct KeptBatch {
    RunContext context;
    std::deque<Tensor> copies;
    std::vector<const Tensor*> predictions;  ///< like predictions_, but copies
    std::vector<const Tensor*> weights;      ///< like weights_
    std::optional<double> loss;
  };
  void AddSumsTo(MetricTotals& totals) const;
  void AddCount(MetricSet::Counts kind, size_t metric, int64_t rows);
  void ReadLabels(const SlotBatch& batch, SlotId label);
  Status ReadLoss(std::optional<double>* loss);
  void AddLoss(const SlotBatch& batch, std::optional<double> loss);
  Status AddMetrics(const RunContext& context);
  /// Reads labels and predictions; for more than two classes, the value the metric needs.
  Status ReadRows(const SlotBatch& batch, size_t metric);
  /// Removes rows of weight 0 from the buffers.
  Status ReadWeights(const SlotBatch& batch, size_t metric);
  void LookAtLabels(const RunContext& context, size_t metric) const;
  void AddGroups(const SlotBatch& batch, size_t metric);
  float WeightOf(size_t i) const { return weight_buffer_.empty() ? 1.0F : weight_buffer_[i]; }
  /// Rows with a non-finite prediction or label; they are excluded and counted separately.
  int64_t CountNonFiniteRows() const;
  void LeaveOutNonFiniteRows();

  const MetricSet* set_;
  AccumulatorOptions options_;
  std::vector<const Tensor*> predictions_;
  std::vector<const Tensor*> weights_;  ///< by metric; null: weight 1
  const Tensor* loss_ = nullptr;        ///< null: the frame has none
  HostView host_view_;
  std::deque<KeptBatch> kept_;  ///< the first kept_count_ are in use; the others only keep memory
  size_t kept_count_ = 0;
  std::deque<MetricSums> sums_;  ///< by metric, empty for GAUC; the loss; row counts
  /// Sums since the last TakeWindow; empty without AccumulatorOptions::has_windows. Accumulated separately, because the
  /// difference of two large totals would lose precision.
  std::deque<MetricSums> window_sums_;
  mutable std::mutex samples_mutex_;
  std::vector<GroupSample> samples_;
  std::vector<float> prediction_buffer_;
  std::vector<float> label_buffer_;
  std::vector<float> weight_buffer_;  ///< empty: weight 1
  std::vector<int> row_buffer_;       ///< indices in the batch of the buffered rows; empty: all
};

}  // namespace millrace
