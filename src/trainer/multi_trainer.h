#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "device_worker/batch_trace.h"
#include "device_worker/device_worker.h"
#include "device_worker/dump_files.h"
#include "device_worker/dump_observer.h"
#include "device_worker/nan_check.h"
#include "trainer/batch_observers.h"
#include "trainer/evaluator.h"
#include "trainer/quality_watch.h"
#include "trainer/trainer.h"

namespace millrace {

/// Trains with a thread a worker, or, as PipelineTrainer, with a pipeline of section threads a worker; the calling
/// thread coordinates: evaluations and checkpoints while the workers stand still, progress, the end.
class MultiTrainer final : public Trainer {
 public:
  static Result<std::unique_ptr<Trainer>> Create(Job& job, TrainerHooks hooks);
  Result<RunReport> Run(std::stop_token stop) override;

 private:
  using Clock = std::chrono::steady_clock;

  struct FrameContext {
    std::unique_ptr<Frame> frame;
    std::unique_ptr<MetricAccumulator> metrics;
    std::unique_ptr<NanCheck> nan_check;
    std::unique_ptr<BatchTrace> trace;   ///< null without output.trace
    std::unique_ptr<DumpObserver> dump;  ///< null without dump_fields and dump_param
  };
  struct WorkerSlot {
    std::vector<FrameContext> frames;             ///< one; a pipeline's has one for each micro-batch under way
    std::unique_ptr<LocalDenseParameters> dense;  ///< of a pipeline
    std::unique_ptr<DeviceWorker> worker;
    Status status;
  };

  MultiTrainer(Job& job, TrainerHooks hooks, QualityWatch watch)
      : job_(&job), hooks_(std::move(hooks)), watch_(std::move(watch)) {}

  Status MakeWorkerSlots();
  /// Makes the slot's frames, `count` of them, and what looks at them.
  Status MakeFrames(WorkerSlot& slot, int index, int count);
  Status MakeObservers(FrameContext& context, int index);
  Status MakeWorker(WorkerSlot& slot, int index);
  Status AddPipeline(WorkerSlot& slot, int index, WorkerParts* parts);
  std::vector<BatchObserver*> ObserversOf(const FrameContext& context, int index) const;
  MicroBatchSchedule::Options ScheduleOptions() const;
  Result<RunReport> RunPasses(const std::stop_token& stop);
  /// Whether a worker that ended with an error left parameters that a run can go on from.
  bool CanCheckpointAfter(const WorkerSlot& slot) const;
  /// Whose failure ends the pass; null when none failed.
  const WorkerSlot* FailedSlot() const;
  Status Load(const std::stop_token& stop);
  /// Does what eval.every_steps asked for when a stop cut the earlier run short.
  Status CatchUpEvaluation(const std::stop_token& stop);
  /// Loads what the next pass needs, for input whose passes have files of their own. A stop ends the run.
  Status PreparePass(const std::stop_token& stop);
  Status RunPass(const std::stop_token& stop);
  /// A worker's thread.
  void RunWorker(size_t index);
  /// The worker's status is there, and it trains no more in this pass.
  void EndWorker(size_t index);
  Status Coordinate(PauseGate& gate, const std::stop_token& stop);
  /// While all workers stand still within a pass: whatever is due.
  Status AtBoundary(const std::stop_token& stop);
  Status EndOfPass(const std::stop_token& stop);
  Status Evaluate(const std::stop_token& stop);
  Status SaveCheckpoint();
  /// What ended the run, when the parameters are sound: saves what was trained, and says so behind the failure.
  Status CheckpointAfterFailure(const Status& failure, bool of_files);
  void Snapshot();
  void Tick();
  Status FillPassReport(const PassStats& stats);
  Status MergePrivateVars();
  /// Every frame that a batch runs through, in the same order in each run of the job.
  std::vector<const Frame*> AllFrames() const;
  /// A worker that waits for a dump's converter, or stands in a long loop, would not come to a boundary.
  void StopWithinBatch();
  bool Crossed(int64_t every, int64_t since) const;

  Job* job_;
  TrainerHooks hooks_;
  QualityWatch watch_;
  std::vector<MetricAccumulator*> all_metrics_;
  std::unique_ptr<FetchObserver> fetch_observer_;
  std::unique_ptr<ProfileObserver> profile_observer_;
  std::unique_ptr<VocabularyObserver> vocabulary_observer_;  ///< null without exports
  std::unique_ptr<HandlerObserver> handler_observer_;        ///< null without a fetch handler
  std::unique_ptr<PauseGate> gate_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<DumpFiles> dump_files_;  ///< null without a dump
  std::vector<WorkerSlot> worker_slots_;
  SharedProgress progress_;
  /// False when a worker failed, or a stop ended its batch after it had changed parameters: no state to go on from.
  std::atomic<bool> is_sound_{true};
  RunState state_;
  ConsumedRanges pass_base_;  ///< what an interrupted run trained of this pass
  std::stop_source stop_workers_;
  RunReport report_;
  PassReport pass_;
  std::vector<FetchLine::Value> last_fetched_;  ///< of the pass
  Clock::time_point pass_start_;
  Clock::time_point last_checkpoint_;
  Clock::time_point stop_seen_ = Clock::time_point::max();
  int64_t last_checkpoint_step_ = 0;
  bool last_eval_was_best_ = false;
};

}  // namespace millrace
