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

/// Labels of a batch that a loss or a measure has no meaning for.
struct LabelsOutOfRange {
  int64_t count = 0;
  std::string_view variable;  ///< that holds them
  std::string place;          ///< of the first: "part-3:17"
  int64_t step = 0;           ///< of the batch, from 0
  double value = 0;           ///< of the first
};

/// What is counted of them, and the first one in words.
struct LabelRangeCount {
  int64_t count = 0;
  std::string first;
};

/// Labels that the losses and measures of a job have no meaning for, of all workers and of evaluations: counted, the
/// first one shown, or refused. Thread-safe; a batch without one does not come here.
class LabelRangeMonitor {
 public:
  /// Of a program of Paddle's: it trains on any label, as it does there.
  LabelRangeMonitor() : LabelRangeMonitor(std::vector<std::string>{}) {}
  /// Of a model, whose losses read the slots `labels`: one outside its range is kBadData.
  explicit LabelRangeMonitor(std::vector<std::string> labels) : refused_(std::move(labels)) {}

  /// Labels outside [0, 1] of a loss that takes the log of a share.
  Status OfLoss(const LabelsOutOfRange& found);
  /// Labels that `measure` is not defined for; `meaning` says how they count: "above 0.5 it counts as a click".
  void OfMeasure(std::string_view measure, std::string_view meaning, const LabelsOutOfRange& found);

  /// Examples of `loss` were weighed; `counts`: one of them more than 0. Of each frame a few times in a run.
  void OfWeights(std::string_view loss, bool counts);
  /// The losses whose examples were weighed, and whether one of these counted.
  std::map<std::string, bool> Weighed() const;

  LabelRangeCount of_losses() const { return losses_.Get(); }
  LabelRangeCount of_measures() const { return measures_.Get(); }

 private:
  class Tally {
   public:
    /// True for the first that comes.
    bool Add(int64_t count, const std::string& text);
    LabelRangeCount Get() const;

   private:
    mutable std::mutex mutex_;
    LabelRangeCount sum_;
  };

  const std::vector<std::string> refused_;  ///< empty: none is
  mutable std::mutex weights_mutex_;
  std::map<std::string, bool> weighed_;
  Tally losses_;
  Tally measures_;
};

}  // namespace millrace
