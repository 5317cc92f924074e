#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/span_log.h"
#include "device_worker/device_worker.h"

namespace millrace {

/// Notes when one worker waited, ran a batch and ran each operator, for the steps [first, first + batches) of a run.
/// The frame must profile. Memory is taken at construction. `readers`, when not null, is closed behind the last step.
class BatchTrace final : public BatchObserver {
 public:
  BatchTrace(int worker, int64_t first_step, int64_t batches, size_t ops, SpanLog* readers);
  Status OnBatch(const TrainedBatch& trained) override;

  struct Batch {
    int64_t step = 0;
    int64_t rows = 0;
    int64_t end_nanoseconds = 0;  ///< of the steady clock
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

/// When the first traced batch of some workers was asked for, and the last one had ended, by the steady clock; `begin`
/// is INT64_MAX where none was traced.
struct TraceTimes {
  int64_t begin = INT64_MAX;
  int64_t end = 0;
};
TraceTimes TimesOf(const std::vector<const BatchTrace*>& traces);

/// A process in a trace; without a name it is not named.
struct TraceProcess {
  int number = 1;
  std::string name = {};
};

/// The events of a process in Chrome's trace format, between commas: a thread a worker, below each batch its operators;
/// and a thread a reader, with what it waited for and parsed from a second before times.begin, which is the trace's
/// zero, to times.end. `readers` may be null.
std::string TraceEvents(const Executable& executable, const std::vector<const BatchTrace*>& traces,
                        const SpanLog* readers, const TraceTimes& times, const TraceProcess& process);
/// A trace for chrome://tracing and Perfetto, of the events of some processes.
std::string ChromeTrace(const std::vector<std::string>& events);

}  // namespace millrace
