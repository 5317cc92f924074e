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

/// What the metrics of a job added up, of some threads and some time; totals merge by adding. Made by MetricSet.
struct MetricTotals {
  /// Of each metric, then of the loss; then each metric's rows that are not finite, which are in no sum.
  std::vector<double> sums;
  std::vector<GroupSample> samples;  ///< of the GAUCs; empty where nobody wants them
};

/// The metrics of a job and where their inputs are; shared by all workers, immutable.
class MetricSet {
 public:
  /// `loss` is the variable of the loss, whose mean is kept beside the metrics; empty, or none of a frame: none is.
  /// kInvalidConfig for a slot that is not there, or a kind that is not in `registry`.
  static Result<std::unique_ptr<const MetricSet>> Create(const std::vector<MetricSpec>& specs, const SlotSchema& schema,
                                                         const MetricRegistry& registry, const std::string& loss);

  /// Printed names, "auc" or "income/auc"; a second metric of a name gets "_2".
  const std::vector<std::string>& names() const { return names_; }
  /// Which values of a metric are better, by its printed name; nullopt when there is none of that name.
  std::optional<MetricBetter> Better(std::string_view name) const;
  /// The variables that predictions and weights are read from. The loss is not among them.
  std::vector<std::string> Variables() const;
  /// Totals of no rows.
  MetricTotals NewTotals() const;
  /// Totals of no rows that take no samples: enough for every metric but GAUC.
  MetricTotals NewSums() const { return {std::vector<double>(sums_), {}}; }
  /// Sorts the samples.
  MetricValues Compute(MetricTotals& totals) const;
  /// The value of metric `index` alone; NaN where a row's prediction or label was NaN or infinite. Sorts the sample of
  /// a GAUC, which `totals` must have.
  double Value(size_t index, MetricTotals& totals) const;
  /// What metric `index`, which is no GAUC, added up; empty where a row's prediction or label was NaN or infinite.
  std::span<const double> Sums(size_t index, const MetricTotals& totals) const;
  /// The mean of the loss over rows; NaN where none was seen.
  double Loss(const MetricTotals& totals) const;
  /// Whether metric `index` is computed from a sample.
  bool IsGrouped(size_t index) const { return entries_[index].metric == nullptr; }
  /// How many rows had such a prediction or label; of the metric that met most of them.
  int64_t NonFiniteRows(const MetricTotals& totals) const;
  /// Adds totals of other rows to `*all`.
  static void Add(const MetricTotals& totals, MetricTotals* all);
  /// Writes totals into a checkpoint.
  static void Write(const MetricTotals& totals, std::ostream& out);
  /// What Write wrote; nullopt for totals of other metrics.
  std::optional<MetricTotals> FromBytes(std::string_view bytes) const;
  /// As FromBytes for what stands at the front of `bytes`, and takes it away.
  std::optional<MetricTotals> TakeBytes(std::string_view* bytes) const;

 private:
  friend class MetricAccumulator;
  struct Entry {
    std::unique_ptr<Metric> metric;  ///< null: GAUC
    MetricBetter better = MetricBetter::kHigher;
    std::string prediction;
    std::string weights;  ///< empty: every row counts once
    SlotId label = -1;
    SlotId group = -1;
    OfClasses of_classes = OfClasses::kLast;
    MetricLabels looks_for = MetricLabels::kAny;  ///< kAny also where another entry looks at the same labels
    size_t first = 0;                             ///< of its sums; of a GAUC, its sample
  };
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
  std::string loss_;
  size_t sums_ = 0;
  size_t loss_sums_ = 0;                 ///< in the sums, where those of the loss are: loss times rows, rows
  size_t non_finite_ = 0;                ///< in the sums, where the counts of rows that are not finite begin
  std::vector<GroupSample> no_samples_;  ///< empty ones
};

/// Reads predictions and labels of one worker's batches and keeps its sums.
///
/// Add belongs to the worker; AddTo and the window to any one other thread, meanwhile. Allocates when a batch is larger
/// than all before. With GAUC alone, Add takes a lock for the length of a batch, and rows are kept until MoveRowsTo.
class MetricAccumulator {
 public:
  /// `frame` must hold the predictions; both must outlive it, as must `label_monitor`, which is told of labels that a
  /// metric is not defined for. Null: nobody wants to know.
  static Result<std::unique_ptr<MetricAccumulator>> Create(const MetricSet& set, const Frame& frame,
                                                           LabelRangeMonitor* label_monitor = nullptr);

  /// Adds the rows of context.batch, which the frame just ran. kInvalidConfig when a prediction has not one value (or
  /// two or more classes) a row. A loss that is no float is left out.
  Status Add(const RunContext& context);
  /// Keeps what Add would read, for AddKept: of batches that count only once others have run, too. context.batch
  /// outlives that. Same errors as Add.
  Status Keep(const RunContext& context);
  /// Adds the batches that were kept, and forgets them.
  Status AddKept();
  /// Adds what this worker added up to `totals`, but for rows that were moved away. Copies rows, if `totals` has
  /// samples.
  void AddTo(MetricTotals& totals) const;
  /// As AddTo, but takes the rows away instead of copying them, those of the window too. While the worker stands still.
  void EndInto(MetricTotals& totals);
  /// Moves the rows of windows that were taken into the samples of `totals`. The worker does not wait for it.
  void MoveRowsTo(MetricTotals& totals);
  /// Adds what came since the last call (or the start) to `window`, and begins the next window. Copies the window's
  /// rows, if `window` has samples.
  void TakeWindow(MetricTotals& window);
  /// Adds what the next TakeWindow would, rows likewise, and lets the window go on.
  void AddWindowTo(MetricTotals& window) const;
  /// Starts from totals of an earlier run.
  void Restore(const MetricTotals& totals);
  void Clear();

 private:
  MetricAccumulator(const MetricSet& set, LabelRangeMonitor* label_monitor)
      : set_(&set), label_monitor_(label_monitor), samples_(set.no_samples_) {}
  /// A batch and copies of what the frame had of it.
  struct KeptBatch {
    RunContext context;
    std::deque<Tensor> copies;
    std::vector<const Tensor*> predictions;  ///< as predictions_, of the copies
    std::vector<const Tensor*> weights;      ///< as weights_
    std::optional<double> loss;
  };
  void AddSumsTo(MetricTotals& totals) const;
  void ReadLabels(const SlotBatch& batch, SlotId label);
  Status ReadLoss(std::optional<double>* loss);
  void AddLoss(const SlotBatch& batch, std::optional<double> loss);
  Status AddMetrics(const RunContext& context);
  /// Reads labels and predictions, and of more than two classes what the metric reads of them.
  Status ReadRows(const SlotBatch& batch, size_t metric);
  /// Rows of weight 0 are taken out of what was read.
  Status ReadWeights(const SlotBatch& batch, size_t metric);
  void LookAtLabels(const RunContext& context, size_t metric) const;
  void AddGroups(const SlotBatch& batch, const MetricSet::Entry& entry);
  float WeightOf(size_t i) const { return weight_buffer_.empty() ? 1.0F : weight_buffer_[i]; }
  /// Rows whose prediction or label is NaN or infinite; they say nothing of the others, and are counted alone.
  int64_t CountNonFiniteRows() const;
  void LeaveOutNonFiniteRows();

  const MetricSet* set_;
  LabelRangeMonitor* label_monitor_;
  std::vector<const Tensor*> predictions_;
  std::vector<const Tensor*> weights_;  ///< by metric; null: every row counts once
  const Tensor* loss_ = nullptr;        ///< null: the frame has none
  HostView host_view_;
  std::deque<KeptBatch> kept_;  ///< the first kept_count_ of them; the others are there for their memory
  size_t kept_count_ = 0;
  std::deque<MetricSums> sums_;  ///< by metric, empty ones for GAUC; the loss; rows that are not finite
  std::vector<double> window_start_;
  mutable std::mutex samples_mutex_;
  std::vector<GroupSample> samples_;
  std::vector<float> prediction_buffer_;
  std::vector<float> label_buffer_;
  std::vector<float> weight_buffer_;  ///< empty: every row counts once
  std::vector<int> row_buffer_;       ///< of the batch, which stand in the buffers; empty: all
};

}  // namespace millrace
