#pragma once

#include <cstddef>
#include <iosfwd>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/metric.h"

namespace millrace {

/// So many examples of a metric are kept at most, by all threads and ranks together; with more of them it is computed
/// from its sums.
inline constexpr size_t kMostExactExamples = size_t{1} << 22;

/// What an exact measure has to know of an example.
struct ExampleRow {
  float prediction = 0;
  float label = 0;
  float weight = 1;
};

/// The examples that a metric is computed from exactly: all of them, or, when they are more than `most`, none.
///
/// 12 bytes an example. One thread.
class ExampleRows {
 public:
  explicit ExampleRows(size_t most = kMostExactExamples) : most_(most) {}

  void Add(const MetricRows& rows);
  void Merge(const ExampleRows& other);
  /// Whether no example is missing.
  bool is_whole() const { return is_whole_; }
  /// By rising prediction, then label and weight, so that the order does not depend on the parts that they came in.
  /// None unless is_whole().
  std::span<const ExampleRow> Sorted();

  void Write(std::ostream& out) const;
  /// Takes what Write wrote from the front of `bytes` into these empty rows; false when it is not such.
  bool TakeBytes(std::string_view* bytes);

 private:
  bool HasRoomFor(size_t more);

  size_t most_;
  bool is_whole_ = true;
  std::vector<ExampleRow> rows_;
};

/// The examples of each exact metric of some threads. Thread-safe; a thread that adds a batch waits at most while
/// others copy theirs.
class SharedExamples {
 public:
  void Add(size_t metric, const MetricRows& rows) {
    const std::lock_guard lock(mutex_);
    if (metric >= examples_.size()) examples_.resize(metric + 1);
    examples_[metric].Add(rows);
  }
  /// Gives away those of `metrics` metrics, and begins anew.
  std::vector<ExampleRows> Take(size_t metrics) {
    const std::lock_guard lock(mutex_);
    examples_.resize(metrics);
    return std::exchange(examples_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<ExampleRows> examples_;
};

/// Area under the ROC curve of examples by rising prediction; ties count half. NaN where all labels are of one class.
double ExactAuc(std::span<const ExampleRow> sorted);

}  // namespace millrace
