#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "batch/consumed_ranges.h"
#include "core/registry.h"
#include "core/span_log.h"
#include "dataset/dataset.h"
#include "device_worker/batch_runner.h"
#include "device_worker/micro_batch_schedule.h"
#include "device_worker/pause_gate.h"
#include "metrics/metric_set.h"
#include "ranks/rank_step.h"
#include "runtime/frame.h"

namespace millrace {

/// A trained batch, for observers.
struct TrainedBatch {
  const SlotBatch& batch;
  const Frame& frame;
  const RunContext& context;
  int64_t worker_batches = 0;  ///< batches of this worker and pass, including this one and those of earlier runs
  int64_t read_nanoseconds = 0;
  int64_t run_nanoseconds = 0;
  bool begins_step = true;  ///< whether parameters may have changed since the previous batch
};

/// Observes every trained batch of one worker: prints, checks, traces. Called by the worker's thread.
class BatchObserver {
 public:
  virtual ~BatchObserver() = default;
  /// A failure ends the job and is its result.
  virtual Status OnBatch(const TrainedBatch& trained) = 0;
};

/// Counters shared by the workers of a job.
struct SharedProgress {
  std::atomic<int64_t> steps_started{0};  ///< batches over all passes
  std::atomic<int64_t> steps_done{0};
  /// Number of steps at the start of training that workers take in turns, one at a time. While Adagrad's accumulators
  /// are near zero, each step is full-size, and two steps from the same point overshoot permanently (docs/adr/0003).
  int64_t serialized_warmup_steps = 32;
  std::mutex turn;                        ///< held during a batch in those steps
  std::atomic<int64_t> examples{0};       ///< in this run
  std::atomic<int64_t> pass_examples{0};  ///< in the current pass
  /// Requests a pause after every `pause_every` steps; 0: never.
  int64_t pause_every = 0;
  int64_t eval_every = 0;
};

/// Whether (since, now] contains a multiple of `every`; never for 0.
inline bool Crossed(int64_t every, int64_t since, int64_t now) { return every > 0 && now / every > since / every; }

/// Whether a pause is due after the steps (since, now].
inline bool PauseIsDue(const SharedProgress& progress, int64_t since, int64_t now) {
  return Crossed(progress.pause_every, since, now) || Crossed(progress.eval_every, since, now);
}

/// A frame in which a worker runs batches, and its observers.
struct WorkerFrame {
  Frame* frame = nullptr;
  MetricAccumulator* metrics = nullptr;  ///< null: no metrics
  std::vector<BatchObserver*> observers;
};

/// Additional parts of a SectionWorker.
struct PipelineParts {
  const PipelineProgram* program = nullptr;
  MicroBatchSchedule::Options schedule;
  int micro_batches = 1;  ///< batches per mini-batch
  std::vector<int> cpus;  ///< by section thread, in section order; empty: any
  bool profile = false;   ///< worker 0 with `debug`: prints a line per section at the end of a pass
};

/// Additional parts of a SyncWorker.
struct RankParts {
  RankStep* step = nullptr;
  Dataset* dataset = nullptr;                ///< source(i) delivers the i-th micro-batch of this rank, step by step
  std::atomic<bool>* wants_pause = nullptr;  ///< set to make all ranks pause after the next step
  std::stop_token stop_reading;              ///< cancels waiting for a batch, which ends the run
  SpanLog* spans = nullptr;                  ///< for a trace; null: none
  /// Requests rows of a batch from other ranks that this step trains later (Prefetchable); empty: not needed. Fails
  /// like Prefetchable::Fetch.
  std::function<Status(const SlotBatch&)> fetch;
};

/// The parts of a worker; all must outlive it.
struct WorkerParts {
  int index = 0;
  std::vector<WorkerFrame> frames;  ///< one; a SectionWorker has as many as its schedule needs
  ReaderLock* reading = nullptr;    ///< null: batches contain the training data
  PauseGate* gate = nullptr;
  SharedProgress* progress = nullptr;
  DenseParameters* dense = nullptr;  ///< null: the frame's program contains its updates
  InputNames input;
  int cpu = -1;            ///< CPU to stay on; -1: any
  PipelineParts pipeline;  ///< for a SectionWorker
  RankParts ranks;         ///< for a SyncWorker
};

/// Prepares the calling thread for operators: matrix products stay in it, because the workers provide the parallelism,
/// and it stays on a CPU; -1, or one that is not available: any.
void BecomeWorker(int cpu);
/// The CPUs available to this process.
std::vector<int> UsableProcessors();

/// Times and counts of a worker in one pass.
struct WorkerReport {
  int64_t earlier_batches = 0;  ///< in this pass, before a resume
  int64_t batches = 0;
  int64_t examples = 0;
  int64_t read_nanoseconds = 0;      ///< waiting for batches
  int64_t run_nanoseconds = 0;       ///< operators
  int64_t exchange_nanoseconds = 0;  ///< SyncWorker: waiting for other ranks, and summing their data
  bool was_cut = false;              ///< the last batch ended within its operators: a failure, or a stop in a loop
  bool input_failed = false;         ///< no batch was delivered; earlier batches were trained completely
};

/// Runs a program over batches in one thread.
class DeviceWorker {
 public:
  virtual ~DeviceWorker() = default;
  /// Trains until the source ends (ok). A stop request takes effect between batches, or within a batch that runs a loop
  /// (`while`). Fails with kCancelled after a stop request, otherwise with the first failure of the source, the frame,
  /// the metrics or an observer.
  virtual Status Train(BatchSource& source, std::stop_token stop) = 0;
  /// The trained positions of this pass; read it only while the worker is paused.
  virtual const ConsumedRanges& consumed() const = 0;
  virtual const WorkerReport& report() const = 0;
  /// Resets consumed() and report() for a new pass, or for the rest of a pass of which the worker trained
  /// `earlier_batches` before.
  virtual void StartPass(int64_t earlier_batches) = 0;
};

/// Creates a worker of a class.
using WorkerMaker = std::unique_ptr<DeviceWorker> (*)(WorkerParts parts);

/// Worker classes by name: TrainerDesc.device_worker_name.
class WorkerRegistry : public Registry<WorkerMaker> {
 public:
  WorkerRegistry() : Registry("worker of the class") {}
};

/// Registers the built-in workers. Fails with kAlreadyExists if a name is taken.
Status RegisterBuiltinWorkers(WorkerRegistry& registry);

}  // namespace millrace
