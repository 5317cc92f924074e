#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch/slot_batch.h"
#include "device_worker/nan_check.h"
#include "reader/reader_holder.h"
#include "trainer/batch_observers.h"
#include "trainer/trainer.h"

namespace millrace {

/// Trains a program that reads its data itself, from readers that its startup program made. One thread, and those of
/// the readers.
///
/// A program with a `while` in its main block is the whole training: it runs once, and each of the loop's rounds that
/// read an item is a step. One without is a step: it runs as long as every reader that it reads has another item, which
/// is an epoch; readers are then started over. Checkpoints are taken between rounds (steps). They hold how far the
/// readers were read, the states of operators, and the variables that the loop's rounds hand on; readers get there
/// again by reading as much. A round or step in which a stop request arrives is finished first, if its data come soon.
/// It counts as between rounds while it waits for data, if it has done nothing yet, or everything but ask for more.
class ReaderTrainer final : public Trainer, private LoopObserver {
 public:
  static Result<std::unique_ptr<Trainer>> Create(Job& job, TrainerHooks hooks);
  Result<RunReport> Run(std::stop_token stop) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct NamedReader {
    std::string name;
    ReaderHolder* holder = nullptr;
    bool is_read = false;  ///< by a `read` of the main program
  };
  struct NamedTensor {
    std::string name;
    Tensor* tensor = nullptr;
  };

  ReaderTrainer(Job& job, TrainerHooks hooks);
  Status FindReaders();
  /// What becomes of checkpoints when an operator reads data by itself and does not say how far.
  Status CheckSources();
  /// The tensors that operators before the loop write: what rounds hand on to each other.
  void FindLoopVariables();
  /// Finds where a round may wait for data without having left something that only a part of it did.
  void FindWaits();
  /// `states` are the frame's.
  bool LeavesSomething(const OpDesc& op, const std::vector<NamedKernelState>& states) const;
  ReaderCounts Read() const;
  /// What AfterRound counts.
  Status CountRound(RunContext* body);
  /// Tells of the end of an epoch that printed nothing.
  Status ReportPoint();
  /// kBadData when nobody read anything.
  Status CheckTrained() const;
  Status RunLoop(const std::stop_token& stop);
  Status RunEpochs(const std::stop_token& stop);
  Status BeforeLoop(RunContext* body) override;
  Status AfterRound(RunContext* body) override;
  Status AfterCutRound(size_t op, Status failure, RunContext* body) override;
  /// Saves what was trained before readers failed, and says so behind the failure.
  Status CheckpointAfterFailure(const Status& failure);
  /// Puts readers (and variables of a loop) where the run to go on from left them.
  Status GoOn(const std::stop_token& stop);
  Result<bool> HasNextStep(const std::stop_token& stop);
  /// Whether a reader has delivered anything since it started, or started over.
  bool WasRead() const;
  Status StartOver();
  /// Counts what was read since the last call; a step when that is anything.
  Status CountStep(const RunContext& context);
  Status CheckpointIfDue(bool epoch_ended);
  Status SaveCheckpoint();
  void Tick();
  Status FinishReport();

  Job* job_;
  TrainerHooks hooks_;
  std::unique_ptr<Frame> frame_;
  std::vector<NamedReader> readers_;
  std::vector<const Tensor*> plugin_sources_;  ///< Job::plugin_sources
  std::vector<NamedTensor> loop_variables_;
  int loop_block_ = -1;   ///< what the loop runs; -1 without a loop
  size_t begin_end_ = 0;  ///< operators [0, begin_end_) of a round leave nothing behind
  size_t tail_ = 0;       ///< those from here on only ask readers whether there is more
  std::vector<MetricAccumulator*> no_metrics_;
  SlotBatch no_batch_;
  SharedProgress progress_;
  std::unique_ptr<FetchObserver> fetch_observer_;
  std::unique_ptr<HandlerObserver> handler_observer_;  ///< null without a handler
  std::unique_ptr<NanCheck> nan_check_;
  std::stop_token stop_;        ///< a loop's rounds are told of it later
  bool saved_at_stop_ = false;  ///< the last checkpoint is of where the stop found the run
  RunState state_;
  RunReport report_;
  PassReport pass_;
  int64_t reported_batches_ = 0;  ///< up to the end of the last epoch; of a resumed run, up to its start
  ReaderCounts read_;             ///< what the readers had delivered at the last CountStep
  Clock::time_point start_;
  Clock::time_point last_tick_;
  Clock::time_point last_checkpoint_;
  int64_t last_checkpoint_step_ = 0;
  int64_t last_checkpoint_epoch_ = 0;
};

}  // namespace millrace
