#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "device_worker/device_worker.h"
#include "job/job_session.h"
#include "ops/embedding/upcoming_rows.h"
#include "ranks/dense_exchange.h"
#include "ranks/rank_pace.h"
#include "ranks/rank_step.h"
#include "report/rank_progress.h"
#include "trainer/training_run.h"

namespace millrace {

/// What a MultiTrainer does with the other ranks of its job: what its workers need, when those of all ranks stand
/// still, and what all have done.
///
/// With dist { update: SYNC } a rank has one SyncWorker, and every step says whether a pause comes behind it. Otherwise
/// workers are those of a job of one process, at their own pace (ranks/rank_pace.h): their sources wait where a rank
/// has to, and an observer shares what they trained.
///
/// Belongs to the trainer's thread, but for what is said to be any thread's.
class RankTraining {
 public:
  /// What is given outlives the object.
  static Result<std::unique_ptr<RankTraining>> Create(JobSession& session, TrainingRun& run, PauseGate& gate);

  ~RankTraining();

  /// Sources of the dataset that this rank trains from.
  int sources() const;
  /// For a SyncWorker, whose frame is `frame`.
  Status AddStep(const Frame& frame, Dataset& dataset, WorkerParts* parts);
  /// Where a worker gets its batches from instead of `source`; null: there. Belongs to its thread, which destroys it
  /// before the pass ends, and with it a batch that it has taken and that is not trained.
  std::unique_ptr<BatchSource> SourceOf(int worker, BatchSource& source);
  /// Who looks at batches afterwards; null: nobody.
  BatchObserver* ObserverOf(int worker);

  /// Before a pass: a collective comes between this and the first batch.
  void StartPass();
  /// Asks all ranks to stand still behind the batches that they have in hand. Any thread.
  void AskForPause(bool is_stop);
  /// Ends a wait for batches of which a step would be made. Any thread.
  void StopReading() { stop_reading_.request_stop(); }
  /// This rank's workers have ended. Whether those of all have: otherwise PauseGate says when to stand still, and this
  /// is asked again now and then, since a rank may be lost meanwhile.
  Result<bool> HaveAllEnded();
  /// What ranks that stand still find.
  struct Standing {
    bool have_all_ended = false;
    bool has_one_failed = false;
  };
  /// Waits until all ranks stand still, with the same dense parameters, and with all updates applied. A collective.
  Result<Standing> StandStill(bool has_failed);
  /// A meeting that was called while the last one went on, if there is one, makes workers pause again.
  void LookForPause();

  /// Brings what all ranks have done to the one that leads; there it is added to `state` and kept in others(). Tells
  /// all whether one is not sound or was asked to stop. A collective.
  Status Gather(const RankProgress& mine, RunState* state, bool* is_sound, bool* is_asked_to_stop);
  /// Of others, where this rank leads, at the last Gather.
  const RankProgress& others() const { return others_; }
  /// Sums over all ranks: rows everywhere, the rest where one leads. A collective.
  Status SumLoads(PassStats* load, int64_t* rows) const;
  /// Of an earlier run, those among the positions of the pass that were trained.
  void SetEarlierBadLines(std::map<std::string, int64_t> counts) { earlier_bad_lines_ = std::move(counts); }

 private:
  class PacedWorker;
  class PacedSource;

  RankTraining(JobSession& session, TrainingRun& run, PauseGate& gate);
  /// Of a rank that trains at its own pace: before a worker takes a batch, and after it was trained.
  Status BeforeBatch(int worker, const std::stop_token& stop);
  Status AfterBatch(int worker, int64_t examples);
  /// When its source has no more.
  Status AfterLastBatch(int worker, const std::stop_token& stop);
  /// Whether rows may be asked for before they are pulled: a fetch makes rows, which who infers does not.
  bool MayFetch() const;
  /// Whether rows are to be asked for a batch ahead.
  bool LooksAhead(int worker) const;
  /// Asks for the rows of the batch after the one that a worker is about to train.
  Status FetchRows(int worker, const SlotBatch& next, const std::stop_token& stop);
  void TakeOverFromOthers(int64_t batches, int64_t examples);
  /// Calls a meeting where checkpoint.every_steps or eval.every_steps asks for one.
  void LookAtSteps();

  JobSession* session_;
  TrainingRun* run_;
  PauseGate* gate_;
  RankGroup* ranks_;
  const bool in_step_;
  const int64_t staleness_;  ///< batches that a rank may be ahead; -1: any number
  std::unique_ptr<RankStep> step_;
  std::unique_ptr<UpcomingRows> upcoming_;  ///< of the step, as step_
  std::atomic<bool> wants_pause_{false};
  std::stop_source stop_reading_;
  std::unique_ptr<DenseExchange> dense_;
  std::unique_ptr<RankPace> pace_;
  std::vector<std::unique_ptr<PacedWorker>> workers_;
  std::atomic<int64_t> met_at_step_{0};
  RankProgress others_;
  std::map<std::string, int64_t> earlier_bad_lines_;
};

}  // namespace millrace
