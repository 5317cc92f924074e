#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "device_worker/batch_trace.h"
#include "device_worker/device_worker.h"
#include "device_worker/dump_files.h"
#include "device_worker/dump_observer.h"
#include "device_worker/nan_check.h"
#include "job/trainer.h"
#include "report/batch_observers.h"
#include "report/rank_progress.h"
#include "trainer/pace.h"
#include "trainer/reader_dataset.h"
#include "trainer/training_run.h"

namespace millrace {

/// Trains with a thread a worker, or, as PipelineTrainer, with a pipeline of section threads a worker, each of which
/// takes batches from a source of the job's dataset. Workers of a program that feeds itself take turns at its readers.
/// The calling thread coordinates: it lets the workers stand still where the run is to evaluate or to save, shows
/// progress, and joins them.
class MultiTrainer final : public Trainer, private RunWorkers {
 public:
  static Result<std::unique_ptr<Trainer>> Create(JobSession& session, TrainerHooks hooks);
  Result<RunReport> Run(std::stop_token stop) override;

 private:
  using Clock = TrainingRun::Clock;

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
    bool was_stopped = false;  ///< what it says is that somebody stopped it
  };

  MultiTrainer(JobSession& session, std::unique_ptr<TrainingRun> run)
      : session_(&session),
        job_(&session.job()),
        run_(std::move(run)),
        gathered_(session.ranks(), session.job().metrics()) {}
  Dataset& dataset() const { return readers_ != nullptr ? *readers_ : session_->dataset(); }

  Status MakeWorkerSlots();
  /// Of a program that feeds itself. `frame` is that of worker 0.
  Status FindReaders(Frame& frame);
  /// Makes the slot's frames, `count` of them, and what looks at them.
  Status MakeFrames(WorkerSlot& slot, int index, int count);
  Status MakeObservers(FrameContext& context, int index);
  Status MakeWorker(WorkerSlot& slot, int index);
  Status AddPipeline(WorkerSlot& slot, int index, WorkerParts* parts);
  std::vector<BatchObserver*> ObserversOf(const FrameContext& context, int index) const;
  MicroBatchSchedule::Options ScheduleOptions() const;
  Status Train(const std::stop_token& stop) override;
  Status MergePrivateVars() override;
  Status SaveStates(RunState* state) override;
  /// Whether a worker that ended with an error left parameters that a run can go on from.
  bool CanCheckpointAfter(const WorkerSlot& slot) const;
  /// Whose failure ends the pass; null when none failed.
  const WorkerSlot* FailedSlot() const;
  /// Brings metrics, readers and operators to where an earlier run stood.
  Status TakeOver(const RunState& state, const std::stop_token& stop);
  Status Load();
  /// Notes the rows in the memory of all ranks that the pass to come has; kInvalidConfig where the checkpoint that the
  /// run goes on from, within this pass, was written with others.
  Status NoteInput(int64_t rows);
  /// Loads this rank's rows by `load`; what ends that of one rank ends that of all. A collective.
  Status LoadOnRanks(const std::function<Status(const std::stop_token& stop)>& load);
  /// Loads what the next pass needs, for input whose passes have files of their own. A stop ends the run.
  Status PreparePass(const std::stop_token& stop);
  Status RunPass(const std::stop_token& stop);
  /// Runs the workers' threads to their ends.
  Status RunWorkers(const std::stop_token& stop);
  /// A worker's thread.
  void RunWorker(size_t index);
  /// The worker's status is there, and it trains no more in this pass.
  void EndWorker(size_t index);
  Status Coordinate(PauseGate& gate, const std::stop_token& stop);
  /// Writes where the workers stand into the run's state.
  void Snapshot();
  /// The same when the workers have ended, whose metrics are then in the run's state alone.
  void SnapshotAtEnd();
  /// What both have in common; of the metrics, the window.
  void SnapshotProgress();
  /// Brings what all ranks have done of the pass together where one leads, and lets all know whether one is to stop or
  /// is not sound. `data` is of a pass that has ended. A collective.
  Status GatherProgress(const PassStats& data);
  /// The number of a worker of this process, counted on over the ranks of the job.
  int PlaceOf(int worker) const;
  void StopWorkers();
  /// The workers stand still: does what is due. True where those of all ranks have ended.
  Result<bool> AtPause(const std::stop_token& stop);
  Status FillPassReport(const PassStats& stats);
  /// kBadData where ranks have left out more lines than the job allows, though none of them alone: the leader knows.
  Status CheckBadLinesOfRanks(const PassStats& data) const;
  /// Every frame that a batch runs through, in the same order in each run of the job.
  std::vector<const Frame*> AllFrames() const;
  /// A worker that waits for a dump's converter, or stands in a long loop, would not come to a boundary.
  void StopWithinBatch();
  /// The same for the worker of a rank, where it waits for a converter that takes nothing: the others wait for it.
  void AbandonDumpThatHangs();

  JobSession* session_;
  const CompiledJob* job_;  ///< of the session
  std::unique_ptr<TrainingRun> run_;
  std::unique_ptr<ReaderDataset> readers_;  ///< of a program that feeds itself; null for others
  SharedExamples examples_;                 ///< of all workers, where nothing is trained
  std::vector<MetricAccumulator*> all_metrics_;
  std::unique_ptr<FetchObserver> fetch_observer_;
  std::unique_ptr<ProfileObserver> profile_observer_;
  std::unique_ptr<VocabularyObserver> vocabulary_observer_;  ///< null without exports
  std::unique_ptr<HandlerObserver> handler_observer_;        ///< null without a fetch handler
  std::unique_ptr<PauseGate> gate_;
  std::unique_ptr<Pace> pace_;
  GatheredProgress gathered_;
  std::unique_ptr<DumpFiles> dump_files_;  ///< null without a dump
  std::vector<WorkerSlot> worker_slots_;
  /// False when a worker failed, or a stop ended its batch after it had changed parameters: no state to go on from.
  std::atomic<bool> is_sound_{true};
  std::atomic<bool> has_failed_{false};  ///< a worker, of itself
  bool is_stopping_ = false;             ///< the run ends with the pauses of this pass
  ConsumedRanges pass_base_;             ///< what an interrupted run trained of this pass
  std::stop_token asked_to_stop_;        ///< the caller's, within Run
  std::stop_source loading_;             ///< ends loads, also in the background, and shuffles behind them
  std::optional<std::stop_callback<std::function<void()>>> on_asked_;  ///< asks it to
  std::stop_source stop_workers_;
  std::vector<FetchLine::Value> last_fetched_;  ///< of the pass
  Clock::time_point stop_seen_ = Clock::time_point::max();
};

}  // namespace millrace
