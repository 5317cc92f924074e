#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "device_worker/dense_parameters.h"
#include "metrics/metric_set.h"
#include "runtime/frame.h"

namespace millrace {

/// Where the lines of batches come from, for messages, as in RunContext. They outlive the contexts
/// that name them.
struct InputNames {
  const std::vector<std::string>* files = nullptr;
  bool lines_are_piped = false;

  /// What operators are told of a batch.
  RunContext ContextOf(const SlotBatch& batch, int64_t step, std::stop_token stop) const;
};

/// The turn to read, in a program that feeds itself. Its sources hand out empty batches, to one worker at a time: that
/// worker alone reads, until it calls End.
class ReadTurn {
 public:
  virtual ~ReadTurn() = default;
  /// The program's operators [0, ops()) read.
  virtual size_t ops() const = 0;
  /// Ends the turn, after those operators; returns the examples that they read. Not called when one of them failed.
  virtual int64_t End() = 0;
};

/// Takes batches from a source, runs a frame on each and adds what came out to metrics: the way of a batch that
/// training, an evaluation and the trial of a job share. One thread. Allocates nothing and takes no lock of its own.
class BatchRunner {
 public:
  /// Null metrics measure nothing; null dense parameters: the frame's program updates its own; null `reading`: batches
  /// hold what is run. All outlive the runner.
  BatchRunner(Frame& frame, MetricAccumulator* metrics, DenseParameters* dense, InputNames input,
              ReadTurn* reading = nullptr)
      : frame_(&frame), metrics_(metrics), dense_(dense), input_(input), reading_(reading) {}

  /// The next batch; null at the end of the pass. kCancelled at a stop request, also where a batch is ready.
  Result<BatchPtr> Take(BatchSource& source, const std::stop_token& stop);
  /// Runs the frame as step `step`; the batch outlives the reading of the frame's variables.
  Status Run(const SlotBatch& batch, int64_t step, const std::stop_token& stop);
  /// Adds what the last Run left in the frame to the metrics.
  Status Measure() { return metrics_ != nullptr ? metrics_->Add(context_) : Status::Ok(); }
  /// Keeps it for MeasureKept, which adds all that was kept; the batch outlives that.
  Status KeepToMeasure() { return metrics_ != nullptr ? metrics_->Keep(context_) : Status::Ok(); }
  Status MeasureKept() { return metrics_ != nullptr ? metrics_->AddKept() : Status::Ok(); }

  const Frame& frame() const { return *frame_; }
  /// Of the last Run.
  const RunContext& context() const { return context_; }
  /// That the last Run saw.
  int64_t examples() const { return examples_; }
  /// That the last Take waited.
  int64_t read_nanoseconds() const { return read_nanoseconds_; }

 private:
  /// Runs a program that reads, of whose operators the first need the turn.
  Status ReadAndRun();

  Frame* frame_;
  MetricAccumulator* metrics_;
  DenseParameters* dense_;
  InputNames input_;
  ReadTurn* reading_;
  RunContext context_;
  int64_t examples_ = 0;
  int64_t read_nanoseconds_ = 0;
};

}  // namespace millrace
