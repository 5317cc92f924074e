#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "device_worker/batch_trace.h"
#include "device_worker/device_worker.h"
#include "device_worker/nan_check.h"
#include "trainer/batch_observers.h"
#include "trainer/evaluator.h"
#include "trainer/quality_watch.h"
#include "trainer/trainer.h"

namespace millrace {

/// Trains with one frame and one thread a worker; the calling thread coordinates: evaluations and checkpoints while the
/// workers stand still, progress, the end.
class MultiTrainer final : public Trainer {
 public:
  static Result<std::unique_ptr<Trainer>> Create(Job& job, TrainerHooks hooks);
  Result<RunReport> Run(std::stop_token stop) override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Seat {
    std::unique_ptr<Frame> frame;
    std::unique_ptr<MetricReader> metrics;
    std::unique_ptr<NanCheck> nan_check;  ///< null without check_nan_var_names
    std::unique_ptr<BatchTrace> trace;    ///< null without output.trace
    std::unique_ptr<DeviceWorker> worker;
    Status status;
  };

  MultiTrainer(Job& job, TrainerHooks hooks, QualityWatch watch)
      : job_(&job), hooks_(std::move(hooks)), watch_(std::move(watch)) {}

  Status MakeSeats();
  Status MakeObservers(Seat& seat, int index, std::vector<BatchObserver*>* observers);
  Status Load(const std::stop_token& stop);
  /// Does what eval.every_steps asked for when a stop cut the earlier run short.
  Status CatchUpEvaluation(const std::stop_token& stop);
  /// Loads what the next pass needs, for input whose passes have files of their own. A stop ends the run.
  Status PreparePass(const std::stop_token& stop);
  Status RunPass(const std::stop_token& stop);
  Status Coordinate(PauseGate& gate, const std::stop_token& stop);
  /// While all workers stand still within a pass: whatever is due.
  Status AtBoundary(const std::stop_token& stop);
  Status EndOfPass(const std::stop_token& stop);
  Status Evaluate(const std::stop_token& stop);
  Status SaveCheckpoint();
  void Snapshot();
  void Tick();
  void FillPassReport(const PassStats& stats);
  void MergePrivateVars();
  bool Crossed(int64_t every, int64_t since) const;

  Job* job_;
  TrainerHooks hooks_;
  QualityWatch watch_;
  std::vector<MetricReader*> all_metrics_;
  std::unique_ptr<FetchObserver> fetch_observer_;
  std::unique_ptr<ProfileObserver> profile_observer_;
  std::unique_ptr<PauseGate> gate_;
  std::unique_ptr<Evaluator> evaluator_;
  std::vector<Seat> seats_;
  SharedProgress progress_;
  RunState state_;
  TrainedLedger pass_base_;  ///< what an interrupted run trained of this pass
  std::stop_source stop_workers_;
  RunReport report_;
  PassReport pass_;
  Clock::time_point pass_start_;
  Clock::time_point last_checkpoint_;
  int64_t last_checkpoint_step_ = 0;
  bool last_eval_was_best_ = false;
};

}  // namespace millrace
