#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/executable.h"
#include "framework/slot_batch.h"
#include "metrics/metric.h"
#include "model/model_compiler.h"

namespace millrace {

/// Metric values by printed name, in the model's order.
using MetricValues = std::vector<std::pair<std::string, double>>;

/// The metrics of a job and where their inputs are; shared by all workers, immutable.
class MetricSet {
 public:
  static Result<std::unique_ptr<const MetricSet>> Create(const std::vector<MetricSpec>& specs,
                                                         const SlotSchema& schema);

  /// Printed names, "auc"; a second metric of a kind gets "_2".
  const std::vector<std::string>& names() const { return names_; }
  /// The variables that predictions are read from.
  std::vector<std::string> Predictions() const;
  int sums() const { return sums_; }
  /// Values of `totals` (sums() of them).
  MetricValues Compute(std::span<const double> totals) const;

 private:
  friend class MetricReader;
  struct Entry {
    std::unique_ptr<Metric> metric;
    std::string prediction;
    SlotId label = -1;
    SlotId group = -1;
    int first_sum = 0;
  };
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
  int sums_ = 0;
};

/// Reads predictions and labels of one worker's batches and keeps its sums.
///
/// Add belongs to the worker; AddTo may be called by any thread. Allocates when a batch is larger than all before.
class MetricReader {
 public:
  /// `frame` must hold the predictions; both must outlive it.
  static Result<std::unique_ptr<MetricReader>> Create(const MetricSet& set, const Frame& frame);

  /// Adds the rows of a batch that the frame just ran. kInvalidConfig when a prediction has not one value (or two or
  /// more classes) a row.
  Status Add(const SlotBatch& batch);
  /// Adds this worker's sums to `totals`.
  void AddTo(std::span<double> totals) const;
  /// Starts from sums of an earlier run.
  void Restore(std::span<const double> totals);
  void Clear();

 private:
  MetricReader() = default;
  const MetricSet* set_ = nullptr;
  std::vector<const Tensor*> predictions_;
  std::deque<MetricSums> sums_;
  std::vector<float> prediction_buffer_;
  std::vector<float> label_buffer_;
  std::vector<uint64_t> group_buffer_;
};

}  // namespace millrace
