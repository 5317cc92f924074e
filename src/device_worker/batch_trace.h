#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/span_log.h"
#include "device_worker/device_worker.h"

namespace millrace {

/// Records when one worker waited, ran a batch and ran each operator, for the steps [first, first + batches) of a run.
/// The frame must profile. Allocates only at construction. `readers`, if not null, is closed after the last step.
/// OnBatch does not fail.
class BatchTrace final : public BatchObserver {
 public:
  BatchTrace(int worker, int64_t first_step, int64_t batches, size_t ops, SpanLog* readers);
  Status OnBatch(const TrainedBatch& trained) override;

  struct Batch {
    int64_t step = 0;
    int64_t rows = 0;
    int64_t end_nanoseconds = 0;  ///< steady clock
    int64_t read_nanoseconds = 0;
    int64_t run_nanoseconds = 0;
    std::string first_row;
  };
  int worker() const { return worker_; }
  const std::vector<Batch>& batches() const { return batches_; }
  /// Nanoseconds of operator `op` in batches()[batch].
  int64_t op_nanoseconds(size_t batch, size_t op) const { return op_nanoseconds_[batch * ops_ + op]; }

 private:
  int worker_;
  int64_t first_step_;
  int64_t end_step_;
  size_t ops_;
  SpanLog* readers_;
  std::vector<Batch> batches_;
  std::vector<int64_t> op_nanoseconds_;
  std::vector<int64_t> before_;
};

/// Start of the first and end of the last traced batch over some workers, by the steady clock; `begin` is INT64_MAX
/// without traced batches.
struct TraceTimes {
  int64_t begin = INT64_MAX;
  int64_t end = 0;
};
TraceTimes TimesOf(const std::vector<const BatchTrace*>& traces);

/// A process in a trace; unnamed if the name is empty.
struct TraceProcess {
  int number = 1;
  std::string name = {};
};

/// The events of a process in Chrome's trace format, separated by commas: a thread per worker with operators below each
/// batch, and a thread per reader with its waits and parsing. Covers one second before times.begin, the zero of the
/// trace, until times.end. `readers` can be null.
std::string TraceEvents(const Executable& executable, const std::vector<const BatchTrace*>& traces,
                        const SpanLog* readers, const TraceTimes& times, const TraceProcess& process);
/// A trace for chrome://tracing and Perfetto with the events of some processes.
std::string ChromeTrace(const std::vector<std::string>& events);

}  // namespace millrace
