#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "device_worker/device_worker.h"
#include "job/trainer.h"
#include "report/quality_watch.h"
#include "trainer/evaluator.h"

namespace millrace {

/// What differs between the runs of two trainers: what a worker is, and where its batches come from.
class RunWorkers {
 public:
  virtual ~RunWorkers() = default;
  /// Trains from where the run stands to the end of its passes, or until the run IsOver. Calls GoOn once, before it
  /// trains; AtBoundary while the workers stand still between batches; EndPass, where passes are the run's to count.
  virtual Status Train(const std::stop_token& stop) = 0;
  /// Makes the parameters in the root scope those of all workers. While none trains, before they are measured or saved.
  virtual Status MergePrivateVars() = 0;
  /// Adds to `state` what a checkpoint holds of the workers: kernels' states, readers, a loop's variables.
  virtual Status SaveStates(RunState* state) = 0;
};

/// The life of a run, the same for all trainers: where it stands, how it goes on from an earlier one, which evaluation,
/// checkpoint or model is due at a boundary or at a pass's end, how a stop or a failure ends it, and its report.
///
/// Owned by a trainer, which trains within Run. All but progress() belongs to the thread that called Run, while the
/// workers stand still.
class TrainingRun {
 public:
  using Clock = std::chrono::steady_clock;

  /// kInvalidConfig when early_stopping or keep_best name no metric of the job. The session outlives the run.
  static Result<std::unique_ptr<TrainingRun>> Create(JobSession& session, TrainerHooks hooks);

  /// A whole run, from `hooks.resume` if there is one; `workers` do the training. What they throw is its failure. In a
  /// job of ranks the token that they are given is asked to stop when all ranks know of a stop: where one leads, what
  /// it does alone ends at once.
  Result<RunReport> Run(RunWorkers& workers, const std::stop_token& stop);
  /// Of a job of ranks: one of them was asked to stop, which all know.
  void StopAll() { all_stop_.request_stop(); }

  const TrainerHooks& hooks() const { return hooks_; }
  /// For the operator of that name, which cannot go on from one.
  void LeaveOutCheckpoints(std::string unsaved_operator) {
    hooks_.checkpointer = nullptr;
    report_.unsaved_operator = std::move(unsaved_operator);
  }
  bool is_resumed() const { return hooks_.resume.has_value(); }
  bool IsOver() const { return state_.epoch >= job_->passes() || is_ending(); }
  /// A stop, or early stopping, ends the run here.
  bool is_ending() const { return report_.interrupted || report_.stopped_early; }
  RunState& state() { return state_; }
  RunReport& report() { return report_; }
  PassReport& pass() { return pass_; }
  SharedProgress& progress() { return progress_; }
  int64_t last_checkpoint_step() const { return last_checkpoint_step_; }

  /// Called when the workers' input is there and, in a resumed run, the earlier run's state was taken over: calls
  /// `on_resumed`, then does what the earlier run left undone.
  Status GoOn(const std::stop_token& stop);
  void StartPass();
  /// Does what is due between two batches; IsOver afterwards where a stop ended the run, with a checkpoint.
  Status AtBoundary(const std::stop_token& stop);
  /// Whether this rank, or the one that leads, saves checkpoints.
  bool SavesCheckpoints() const;
  /// Whether checkpoint.every_minutes asks for a boundary, or a checkpoint costs nothing and keeps short what a stop
  /// has to write: no worker `is_busy`, and none has begun a batch since the last call.
  bool IsTimeForCheckpoint(bool is_busy);
  /// Of the pass so far, without its pauses.
  double PassSeconds() const;
  /// Completes the report of the pass and hands it to the reporter.
  Status ReportPass();
  /// Reports an epoch that has batches, none of which after `from` was printed; `fetched` is as after the last one.
  Status ReportPoint(int64_t from, std::vector<FetchLine::Value> fetched);
  /// Goes on to the next pass of a dataset, with what is due between them.
  Status EndPass(const std::stop_token& stop);
  Status SaveCheckpoint() { return SaveCheckpoint(false); }
  /// Saves what was trained since the last checkpoint, where the run ends. A collective of the ranks.
  Status SaveAtStop();
  /// For a failure that left the parameters sound: saves what was trained, and returns the failure with a line that
  /// says so.
  Status CheckpointAfterFailure(const Status& failure, bool of_files);
  /// For a failure that left the parameters of no use: returns it with a line that names the checkpoint from before it.
  /// Ok stays ok.
  Status NameLastCheckpoint(const Status& ended) const;
  /// Shows how far the run is; a few times a second is often enough.
  void Tick();

 private:
  TrainingRun(JobSession& session, TrainerHooks hooks, QualityWatch watch)
      : session_(&session), job_(&session.job()), hooks_(std::move(hooks)), watch_(std::move(watch)) {}

  /// Does what one rank does for all: `work`, where this rank leads; the others wait for its end. All go on from what
  /// it came to: its failure is theirs, and so are where the run stands and whether it ends. A collective of the ranks.
  Status Together(const std::function<Status()>& work);
  /// Of a rank that waits for `work`: takes its part where all are needed. Returns what comes once it is over.
  Status HelpUntilTold(std::string* bytes);
  Status DoGoOn(const std::stop_token& stop);
  Status DoAtBoundary(const std::stop_token& stop);
  Status DoEndPass(const std::stop_token& stop);
  /// Where incremental.shrink says so, once before each pass but the first.
  Status ShrinkTables();
  Status DoCheckpointAfterFailure(const Status& failure, bool of_files);
  Status EvaluateOnce(const std::stop_token& stop);
  /// Takes over the numbers of an earlier run.
  void Begin();
  Status TrainAndEvaluate(const std::stop_token& stop);
  /// Does what eval.every_steps asked for when a stop cut the earlier run short.
  Status CatchUpEvaluation(const std::stop_token& stop);
  Status Evaluate(const std::stop_token& stop);
  /// Where this rank leads, with those of all others, which wait for it in Together.
  Result<EvalReport> Measure(const std::stop_token& stop);
  /// With `may_leave_out`, a run that was asked to stop saves nothing where training again takes less time.
  Status SaveCheckpoint(bool may_leave_out);
  Status TrySaving();
  /// Whether the run was asked to stop, and what was trained since the last checkpoint, some seconds, is trained again
  /// sooner than it is saved; then the report says so.
  bool IsSoonerTrained();
  /// A stop that came while a checkpoint was written ends the run with that one: another batch would cost another one.
  void EndWhereSaved(const std::stop_token& stop);

  JobSession* session_;
  const CompiledJob* job_;  ///< of the session
  TrainerHooks hooks_;
  QualityWatch watch_;
  RunWorkers* workers_ = nullptr;         ///< within Run
  std::unique_ptr<Evaluator> evaluator_;  ///< null without an evaluation set
  SharedProgress progress_;
  RunState state_;
  RunReport report_;
  PassReport pass_;
  Clock::time_point pass_start_;
  Clock::time_point last_checkpoint_;
  int64_t steps_seen_ = -1;  ///< by IsTimeForCheckpoint
  int64_t last_checkpoint_step_ = 0;
  int64_t last_checkpoint_epoch_ = 0;
  bool last_eval_was_best_ = false;
  bool is_between_due_ = false;    ///< CheckpointReason::is_between, at the next boundary
  std::stop_token asked_to_stop_;  ///< the caller's, within Run
  std::stop_source all_stop_;      ///< of a job of ranks
};

}  // namespace millrace
