#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch/slot_batch.h"
#include "device_worker/nan_check.h"
#include "job/trainer.h"
#include "report/batch_observers.h"
#include "trainer/program_readers.h"
#include "trainer/training_run.h"

namespace millrace {

/// Trains a program that is a whole training, with a `while` in its main block that reads its data itself, from readers
/// that its startup program made. One thread, and those of the readers.
///
/// The program runs once, and each of the loop's rounds that read an item is a step. Checkpoints are taken between
/// rounds. They hold how far the readers were read, the states of operators, and the variables that the loop's rounds
/// hand on; readers get there again by reading as much. A round in which a stop request arrives is finished first, if
/// its data come soon. It counts as between rounds while it waits for data, if it has done nothing yet, or everything
/// but ask for more.
class ReaderTrainer final : public Trainer, private RunWorkers, private LoopObserver {
 public:
  static Result<std::unique_ptr<Trainer>> Create(JobSession& session, TrainerHooks hooks);
  Result<RunReport> Run(std::stop_token stop) override;

 private:
  using Clock = TrainingRun::Clock;
  struct NamedTensor {
    std::string name;
    Tensor* tensor = nullptr;
  };

  explicit ReaderTrainer(JobSession& session)
      : job_(&session.job()), root_(&session.root()), no_batch_(job_->schema()) {}
  /// The tensors that operators before the loop write: what rounds hand on to each other.
  void FindLoopVariables();
  /// Finds where a round may wait for data without having left something that only a part of it did.
  void FindWaits();
  /// Whether operator `op` of a round is such a place.
  bool IsWait(size_t op) const;
  /// Of the loop.
  const OpList& RoundOps() const { return job_->train().ops(loop_block_); }
  /// `states` are the frame's.
  bool LeavesSomething(const OpDesc& op, const std::vector<NamedKernelState>& states) const;
  Status Train(const std::stop_token& stop) override;
  Status MergePrivateVars() override { return Status::Ok(); }
  Status SaveStates(RunState* state) override;
  /// What AfterRound counts.
  Status CountRound(RunContext* body);
  /// Tells of the end of an epoch that printed nothing.
  Status ReportPoint();
  Status RunLoop(const std::stop_token& stop);
  Status BeforeLoop(RunContext* body) override;
  Status AfterRound(RunContext* body) override;
  Status AfterCutRound(size_t op, Status failure, RunContext* body) override;
  /// Puts readers and the loop's variables where the run to go on from left them.
  Status GoOn(const std::stop_token& stop);
  /// Counts what was read since the last call; a step when that is anything.
  Status CountStep(const RunContext& context);
  /// kCancelled where `stop` ended the run.
  Status AtBoundary(const std::stop_token& stop);
  void Tick();
  Status FinishReport();

  const CompiledJob* job_;  ///< of the session
  const Scope* root_;       ///< of the session
  std::unique_ptr<TrainingRun> run_;
  std::unique_ptr<Frame> frame_;
  ProgramReaders readers_;
  std::vector<const Tensor*> plugin_sources_;  ///< CompiledJob::plugin_sources
  std::vector<NamedTensor> loop_variables_;
  int loop_block_ = -1;   ///< what the loop runs
  size_t begin_end_ = 0;  ///< operators [0, begin_end_) of a round leave nothing behind
  size_t tail_ = 0;       ///< those from here on only ask readers whether there is more
  std::vector<MetricAccumulator*> no_metrics_;
  SlotBatch no_batch_;
  std::unique_ptr<FetchObserver> fetch_observer_;
  std::unique_ptr<HandlerObserver> handler_observer_;  ///< null without a handler
  std::unique_ptr<NanCheck> nan_check_;
  std::stop_token stop_;          ///< a loop's rounds are told of it later
  bool saved_at_stop_ = false;    ///< the last checkpoint is of where the stop found the run
  int64_t reported_batches_ = 0;  ///< up to the end of the last epoch; of a resumed run, up to its start
  ReaderCounts read_;             ///< what the readers had delivered at the last CountStep
  Clock::time_point last_tick_;
};

}  // namespace millrace
