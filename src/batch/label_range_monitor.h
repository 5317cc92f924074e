#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Labels in a batch for which a loss or a metric is undefined.
struct LabelsOutOfRange {
  int64_t count = 0;
  std::string_view variable;  ///< contains them
  std::string place;          ///< of the first: "part-3:17"
  int64_t step = 0;           ///< of the batch, from 0
  double value = 0;           ///< of the first
};

/// The count of such labels, and a description of the first.
struct LabelRangeCount {
  int64_t count = 0;
  std::string first;
};

/// Counts labels for which losses and metrics of a job are undefined, over all workers and evaluations, and logs the
/// first, or fails. Thread-safe; not called for batches without such labels.
class LabelRangeMonitor {
 public:
  /// For a program of Paddle: trains on any label, as Paddle does.
  LabelRangeMonitor() : LabelRangeMonitor(std::vector<std::string>{}) {}
  /// For a model whose losses read the slots `labels`: OfLoss fails for labels out of range.
  explicit LabelRangeMonitor(std::vector<std::string> labels) : refused_(std::move(labels)) {}

  /// Records labels outside [0, 1] of a loss that takes the logarithm. For a model, fails with kBadData.
  Status OfLoss(const LabelsOutOfRange& found);
  /// Records labels for which `measure` is undefined; `meaning` describes how they count: "above 0.5 it counts as a
  /// click".
  void OfMeasure(std::string_view measure, std::string_view meaning, const LabelsOutOfRange& found);

  /// Records that examples of `loss` were weighted; `counts`: at least one weight was positive. Called a few times per
  /// frame in a run.
  void OfWeights(std::string_view loss, bool counts);
  /// The losses with weighted examples, and whether any weight was positive.
  std::map<std::string, bool> Weighed() const;

  LabelRangeCount of_losses() const { return losses_.Get(); }
  LabelRangeCount of_measures() const { return measures_.Get(); }

 private:
  class Tally {
   public:
    /// True for the first call.
    bool Add(int64_t count, const std::string& text);
    LabelRangeCount Get() const;

   private:
    mutable std::mutex mutex_;
    LabelRangeCount sum_;
  };

  const std::vector<std::string> refused_;  ///< empty: OfLoss does not fail
  mutable std::mutex weights_mutex_;
  std::map<std::string, bool> weighed_;
  Tally losses_;
  Tally measures_;
};

}  // namespace millrace
