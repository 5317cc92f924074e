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

/// What an observer may know of a batch that was just trained.
struct TrainedBatch {
  const SlotBatch& batch;
  const Frame& frame;
  const RunContext& context;
  int64_t worker_batches = 0;  ///< of this worker and pass, this one and those of earlier runs included
  int64_t read_nanoseconds = 0;
  int64_t run_nanoseconds = 0;
  bool begins_step = true;  ///< whether parameters may have changed since the batch before
};

/// Looks at every batch of one worker after it was trained: prints, checks, traces. Called by the worker's thread.
class BatchObserver {
 public:
  virtual ~BatchObserver() = default;
  /// A failure ends the job.
  virtual Status OnBatch(const TrainedBatch& trained) = 0;
};

/// What the workers of a job count together.
struct SharedProgress {
  std::atomic<int64_t> steps_started{0};  ///< batches, over all passes
  std::atomic<int64_t> steps_done{0};
  /// So many steps at the start of training are taken in turns, one worker at a time: as long as Adagrad's accumulators
  /// are near zero each step is full-size, and two from the same point overshoot for good (docs/adr/0003).
  int64_t serialized_warmup_steps = 32;
  std::mutex turn;                        ///< held for the length of a batch during those steps
  std::atomic<int64_t> examples{0};       ///< of this run
  std::atomic<int64_t> pass_examples{0};  ///< of the current pass
  /// A pause is asked for after every so many steps; 0: never.
  int64_t pause_every = 0;
  int64_t eval_every = 0;
};

/// Whether a multiple of `every` lies behind `since`, up to `now`; never with 0.
inline bool Crossed(int64_t every, int64_t since, int64_t now) { return every > 0 && now / every > since / every; }

/// A frame that a worker runs batches in, and who looks at them afterwards.
struct WorkerFrame {
  Frame* frame = nullptr;
  MetricAccumulator* metrics = nullptr;  ///< null: no metrics
  std::vector<BatchObserver*> observers;
};

/// What a SectionWorker is made of beside the parts of every worker.
struct PipelineParts {
  const PipelineProgram* program = nullptr;
  MicroBatchSchedule::Options schedule;
  int micro_batches = 1;  ///< batches of a mini-batch
  std::vector<int> cpus;  ///< by section thread, section by section; empty: any
  bool profile = false;   ///< worker 0 with `debug`: writes a line a section at the end of a pass
};

/// What a SyncWorker is made of beside the parts of every worker.
struct RankParts {
  RankStep* step = nullptr;
  Dataset* dataset = nullptr;                ///< source(i) has the i-th micro-batch of this rank, step by step
  std::atomic<bool>* wants_pause = nullptr;  ///< set by who wants all ranks to pause behind the next step
  std::stop_token stop_reading;              ///< ends the wait for a batch; the run ends then
  SpanLog* spans = nullptr;                  ///< of a trace; null: none
  /// Asks other ranks for the rows of a batch that this step trains later (FetchesAhead); empty: there is nothing to
  /// ask.
  std::function<Status(const SlotBatch&)> fetch;
};

/// What a worker is made of; all of it outlives the worker.
struct WorkerParts {
  int index = 0;
  std::vector<WorkerFrame> frames;  ///< one; a SectionWorker's has as many as its schedule wants
  ReadTurn* reading = nullptr;      ///< null: batches hold what is trained
  PauseGate* gate = nullptr;
  SharedProgress* progress = nullptr;
  DenseParameters* dense = nullptr;  ///< null: the frame's program updates its parameters itself
  InputNames input;
  int cpu = -1;            ///< processor to stay on; -1: any
  PipelineParts pipeline;  ///< of a SectionWorker
  RankParts ranks;         ///< of a SyncWorker
};

/// Keeps the calling thread on a processor; one that is not ours to take leaves it where it was.
void StayOnProcessor(int cpu);
/// The processors that this process may use.
std::vector<int> UsableProcessors();

/// Seconds that a worker spent, and what it trained, in one pass.
struct WorkerReport {
  int64_t earlier_batches = 0;  ///< of the pass, before a resume
  int64_t batches = 0;
  int64_t examples = 0;
  int64_t read_nanoseconds = 0;      ///< waiting for batches
  int64_t run_nanoseconds = 0;       ///< operators
  int64_t exchange_nanoseconds = 0;  ///< of a SyncWorker: waiting for other ranks, and adding up what they sent
  bool was_cut = false;              ///< its last batch ended within its operators: a failure, or a stop within a loop
  bool input_failed = false;         ///< no batch came; those before it were trained whole
};

/// Runs a program over batches, in one thread.
class DeviceWorker {
 public:
  virtual ~DeviceWorker() = default;
  /// Trains until the source ends (ok) or a stop is requested (kCancelled). A stop takes effect between two batches, or
  /// within a batch that runs a loop (`while`). The first failure comes back.
  virtual Status Train(BatchSource& source, std::stop_token stop) = 0;
  /// What was trained in this pass; read when the worker stands still.
  virtual const ConsumedRanges& consumed() const = 0;
  virtual const WorkerReport& report() const = 0;
  /// Forgets what it consumed and its report: a new pass, or the rest of one of which the worker trained
  /// `earlier_batches` before.
  virtual void StartPass(int64_t earlier_batches) = 0;
};

/// Makes a worker of a class.
using WorkerMaker = std::unique_ptr<DeviceWorker> (*)(WorkerParts parts);

/// Worker classes by name: TrainerDesc.device_worker_name.
class WorkerRegistry : public Registry<WorkerMaker> {
 public:
  WorkerRegistry() : Registry("worker of the class") {}
};

/// The list of workers that Millrace brings along. kAlreadyExists when one of them is there.
Status RegisterBuiltinWorkers(WorkerRegistry& registry);

}  // namespace millrace
