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

/// Maximum number of examples stored for a metric, over all threads and ranks; with more, it is computed from its sums.
inline constexpr size_t kMostExactExamples = size_t{1} << 22;

/// An example of an exact metric.
struct ExampleRow {
  float prediction = 0;
  float label = 0;
  float weight = 1;
};

/// The examples from which a metric is computed exactly: all, or none if there are more than `most`.
///
/// 12 bytes per example. One thread.
class ExampleRows {
 public:
  explicit ExampleRows(size_t most = kMostExactExamples) : most_(most) {}

  void Add(const MetricRows& rows);
  void Merge(const ExampleRows& other);
  /// Whether all examples are stored.
  bool is_whole() const { return is_whole_; }
  /// Sorted by prediction, then label and weight, so the order does not depend on how examples were added. Empty unless
  /// is_whole().
  std::span<const ExampleRow> Sorted();

  void Write(std::ostream& out) const;
  /// Reads the bytes of Write from the front of `bytes` into this empty object; false if they are malformed.
  bool TakeBytes(std::string_view* bytes);

 private:
  bool HasRoomFor(size_t more);

  size_t most_;
  bool is_whole_ = true;
  std::vector<ExampleRow> rows_;
};

/// The examples of each exact metric over some threads. Thread-safe; a thread that adds a batch waits only while others
/// copy theirs.
class SharedExamples {
 public:
  void Add(size_t metric, const MetricRows& rows) {
    const std::lock_guard lock(mutex_);
    if (metric >= examples_.size()) examples_.resize(metric + 1);
    examples_[metric].Add(rows);
  }
  /// Returns the examples of `metrics` metrics and starts again empty.
  std::vector<ExampleRows> Take(size_t metrics) {
    const std::lock_guard lock(mutex_);
    examples_.resize(metrics);
    return std::exchange(examples_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<ExampleRows> examples_;
};

/// Area under the ROC curve of sorted examples; ties count half. NaN if all labels are of one class.
double ExactAuc(std::span<const ExampleRow> sorted);

}  // namespace millrace
