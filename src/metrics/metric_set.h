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
  /// Of each metric, then of the loss; then each metric's rows that are not finite, which are in no other sum; then
  /// those without a group, or whose prediction is clipped; then those whose prediction is no probability.
  std::vector<double> sums;
  std::vector<GroupSample> samples;  ///< of the GAUCs; empty where nobody wants them
  /// Of the metrics that are not exact from sums; empty where nobody wants them.
  std::vector<ExampleRows> examples = {};
};

/// What has to be known of metric values beside them.
struct MetricRemarks {
  /// How far values that are taken from sums may be from the exact ones, by printed name.
  MetricValues bounds;
  /// A line each, "gauc: 3 examples ...", with what of it stays the same from one measurement to the next.
  std::vector<std::pair<std::string, std::string>> lines;
};

/// How many of `predictions` a metric clips (MetricInfo::clipped_at), and what is said of so many.
int64_t ClippedRows(const MetricInfo& info, std::span<const float> predictions, bool are_logits);
std::string ClippedText(const std::string& name, const MetricInfo& info, int64_t rows);

/// A bound below it is not worth a word.
inline constexpr double kLeastBound = 1e-4;

/// "0.712345", and where `bounds` has more than kLeastBound for `name` " +- 0.0123" after it; "nan" has no sign.
std::string MetricText(const std::string& name, double value, const MetricValues& bounds);

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
  MetricTotals NewSums() const { return {std::vector<double>(sums_), {}, {}}; }
  /// Sorts the samples.
  MetricValues Compute(MetricTotals& totals) const;
  /// The value of metric `index` alone; NaN where a row's prediction or label was NaN or infinite. Sorts the sample of
  /// a GAUC, which `totals` must have.
  double Value(size_t index, MetricTotals& totals) const;
  /// What metric `index`, which is no GAUC, added up; empty where a row's prediction or label was NaN or infinite.
  std::span<const double> Sums(size_t index, const MetricTotals& totals) const;
  /// The examples of metric `index`, sorted; nullopt where not all are there.
  std::optional<std::span<const ExampleRow>> Examples(size_t index, MetricTotals& totals) const;
  /// How far the value of metric `index` may be from the exact one; 0: it is exact.
  double Bound(size_t index, const MetricTotals& totals) const;
  /// Of the first metrics, whose `values` are those of `totals`, which has the samples of GAUCs.
  MetricRemarks Remarks(const MetricValues& values, const MetricTotals& totals) const;
  /// How many metrics SharedExamples of this set are of.
  size_t exact_metrics() const { return exact_; }
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
    std::string prediction;
    std::string weights;  ///< empty: every row counts once
    SlotId label = -1;
    SlotId group = -1;
    MetricLabels looks_for = MetricLabels::kAny;  ///< kAny also where another entry looks at the same labels
    size_t first = 0;                             ///< of its sums; of a GAUC, its sample
    MetricInfo info;
    bool by_logit = false;  ///< `prediction` is a logit
    size_t examples = 0;    ///< its number among those that are not exact from sums
  };
  /// Of the counts of rows by metric, which follow each other in the sums.
  enum Counts : size_t { kNonFinite, kNoted, kOutside, kCounts };
  double CountOf(Counts kind, size_t metric, const MetricTotals& totals) const {
    return totals.sums[counts_ + kind * entries_.size() + metric];
  }
  /// Why a metric is NaN; empty where something else says so.
  std::string WhyNone(size_t index, const MetricTotals& totals) const;
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
  std::string loss_;
  size_t sums_ = 0;
  size_t loss_sums_ = 0;  ///< in the sums, where those of the loss are: loss times rows, rows
  size_t counts_ = 0;     ///< in the sums, where the counts of rows begin
  size_t exact_ = 0;
  std::vector<GroupSample> no_samples_;  ///< empty ones
};

/// What else a MetricAccumulator does.
struct AccumulatorOptions {
  LabelRangeMonitor* label_monitor = nullptr;  ///< is told of labels that a metric is not defined for; null: nobody is
  SharedExamples* examples = nullptr;          ///< where those of exact metrics go; null: nowhere
  bool has_windows = false;                    ///< somebody wants windows of metrics other than GAUC
};

/// Reads predictions and labels of one worker's batches and keeps its sums.
///
/// Add belongs to the worker; AddTo and the window to any one other thread, meanwhile. Allocates when a batch is larger
/// than all before. With GAUC or examples, Add takes a lock for the length of a batch; rows of GAUCs are kept until
/// MoveRowsTo.
class MetricAccumulator {
 public:
  /// `frame` must hold the predictions; both must outlive it, as must what `options` points to.
  static Result<std::unique_ptr<MetricAccumulator>> Create(const MetricSet& set, const Frame& frame,
                                                           const AccumulatorOptions& options = {});

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
  MetricAccumulator(const MetricSet& set, const AccumulatorOptions& options)
      : set_(&set), options_(options), samples_(set.no_samples_) {}
  /// A batch and copies of what the frame had of it.
  struct KeptBatch {
    RunContext context;
    std::deque<Tensor> copies;
    std::vector<const Tensor*> predictions;  ///< as predictions_, of the copies
    std::vector<const Tensor*> weights;      ///< as weights_
    std::optional<double> loss;
  };
  void AddSumsTo(MetricTotals& totals) const;
  void AddCount(MetricSet::Counts kind, size_t metric, int64_t rows);
  void ReadLabels(const SlotBatch& batch, SlotId label);
  Status ReadLoss(std::optional<double>* loss);
  void AddLoss(const SlotBatch& batch, std::optional<double> loss);
  Status AddMetrics(const RunContext& context);
  /// Reads labels and predictions, and of more than two classes what the metric reads of them.
  Status ReadRows(const SlotBatch& batch, size_t metric);
  /// Rows of weight 0 are taken out of what was read.
  Status ReadWeights(const SlotBatch& batch, size_t metric);
  void LookAtLabels(const RunContext& context, size_t metric) const;
  void AddGroups(const SlotBatch& batch, size_t metric);
  float WeightOf(size_t i) const { return weight_buffer_.empty() ? 1.0F : weight_buffer_[i]; }
  /// Rows whose prediction or label is NaN or infinite; they say nothing of the others, and are counted alone.
  int64_t CountNonFiniteRows() const;
  void LeaveOutNonFiniteRows();

  const MetricSet* set_;
  AccumulatorOptions options_;
  std::vector<const Tensor*> predictions_;
  std::vector<const Tensor*> weights_;  ///< by metric; null: every row counts once
  const Tensor* loss_ = nullptr;        ///< null: the frame has none
  HostView host_view_;
  std::deque<KeptBatch> kept_;  ///< the first kept_count_ of them; the others are there for their memory
  size_t kept_count_ = 0;
  std::deque<MetricSums> sums_;  ///< by metric, empty ones for GAUC; the loss; counts of rows
  /// Those since the last TakeWindow; none without AccumulatorOptions::has_windows. They are added up by themselves, as
  /// of a difference of two large totals nothing may be left.
  std::deque<MetricSums> window_sums_;
  mutable std::mutex samples_mutex_;
  std::vector<GroupSample> samples_;
  std::vector<float> prediction_buffer_;
  std::vector<float> label_buffer_;
  std::vector<float> weight_buffer_;  ///< empty: every row counts once
  std::vector<int> row_buffer_;       ///< of the batch, which stand in the buffers; empty: all
};

}  // namespace millrace
