#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "device_worker/dense_parameters.h"
#include "metrics/metric_set.h"
#include "runtime/frame.h"

namespace millrace {

/// Origin of the batches' lines, for messages, as in RunContext. Must outlive contexts that refer to it.
struct InputNames {
  const std::vector<std::string>* files = nullptr;
  bool lines_are_piped = false;

  /// The context for operators running this batch.
  RunContext ContextOf(const SlotBatch& batch, int64_t step, std::stop_token stop) const;
};

/// The exclusive turn to read, in a program that feeds itself. Its sources deliver empty batches to one worker at a
/// time, and only that worker reads until it calls End.
class ReaderLock {
 public:
  virtual ~ReaderLock() = default;
  /// The program's operators [0, ops()) read.
  virtual size_t ops() const = 0;
  /// Ends the turn after those operators and returns the number of examples they read. Not called if one of them
  /// failed.
  virtual int64_t End() = 0;
};

/// Takes batches from a source, runs a frame on each and updates metrics; shared by training, evaluation and the trial
/// of a job. One thread. Does not allocate and takes no lock of its own.
class BatchRunner {
 public:
  /// Null `metrics`: nothing is measured. Null `dense`: the frame's program contains its updates. Null `reading`:
  /// batches contain the data. All must outlive the runner.
  BatchRunner(Frame& frame, MetricAccumulator* metrics, DenseParameters* dense, InputNames input,
              ReaderLock* reading = nullptr)
      : frame_(&frame), metrics_(metrics), dense_(dense), input_(input), reading_(reading) {}

  /// The next batch; null at the end of the pass. Fails with kCancelled after a stop request, even if a batch is ready,
  /// and like BatchSource::Next.
  Result<BatchPtr> Take(BatchSource& source, const std::stop_token& stop);
  /// Runs the frame as step `step`; the batch must outlive any reading of the frame's variables. Fails like Frame::Run
  /// and DenseParameters.
  Status Run(const SlotBatch& batch, int64_t step, const std::stop_token& stop);
  /// Updates the metrics with the results of the last Run. Fails like MetricAccumulator::Add.
  Status Measure() { return metrics_ != nullptr ? metrics_->Add(context_) : Status::Ok(); }
  /// Stores the results for MeasureKept, which adds all stored ones; the batch must outlive that. Both fail like
  /// MetricAccumulator::Keep.
  Status KeepToMeasure() { return metrics_ != nullptr ? metrics_->Keep(context_) : Status::Ok(); }
  Status MeasureKept() { return metrics_ != nullptr ? metrics_->AddKept() : Status::Ok(); }

  const Frame& frame() const { return *frame_; }
  /// Of the last Run.
  const RunContext& context() const { return context_; }
  /// Examples of the last Run.
  int64_t examples() const { return examples_; }
  /// Waiting time of the last Take.
  int64_t read_nanoseconds() const { return read_nanoseconds_; }

 private:
  /// Runs a program whose first operators read and need the turn.
  Status ReadAndRun();

  Frame* frame_;
  MetricAccumulator* metrics_;
  DenseParameters* dense_;
  InputNames input_;
  ReaderLock* reading_;
  RunContext context_;
  int64_t examples_ = 0;
  int64_t read_nanoseconds_ = 0;
};

}  // namespace millrace
