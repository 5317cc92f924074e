#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "device_worker/device_worker.h"
#include "job/job_session.h"
#include "trainer/program_readers.h"

namespace millrace {

/// What a program that feeds itself trains on: a pass is from where its readers stand to the end of the first of them.
///
/// Its batches are empty. A worker that got one has the turn: it runs the operators with which the program begins,
/// which read, ends the turn, and trains while the next worker reads. So every item is read by one worker, and what a
/// step reads of several readers belongs together. One worker takes no turns, and no lock.
class ReaderDataset final : public Dataset, public ReaderLock, private BatchSource {
 public:
  /// `frame` is that of worker 0; session and frame outlive the dataset. kInvalidConfig as ProgramReaders::Find.
  static Result<std::unique_ptr<ReaderDataset>> Create(JobSession& session, Frame& frame);

  /// Readers are started over for each pass but the first, and for that one when they stand at their end.
  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int) override { return *this; }
  Result<PassStats> EndPass() override { return PassStats{}; }
  const std::vector<std::string>& files() const override { return no_files_; }
  const SlotSchema& schema() const override { return job_->schema(); }

  size_t ops() const override { return ops_; }
  int64_t End() override;

  /// Brings the readers to where those of an earlier run stood; kCancelled at a stop request.
  Status GoOn(const RunState& state, const std::stop_token& stop);
  /// Where the readers stand, for a checkpoint of `state`, while no worker trains.
  std::vector<ReaderState> PositionsFor(const RunState& state) const;
  Status NothingToTrainOn() const { return readers_.NothingToTrainOn(); }

 private:
  ReaderDataset(const CompiledJob& job, ProgramReaders readers)
      : job_(&job), readers_(std::move(readers)), pool_(job.schema()) {}
  Result<BatchPtr> Next(std::stop_token stop) override;
  Result<bool> HasNext(const std::stop_token& stop);
  Status TakeTurn(const std::stop_token& stop);
  void GiveTurn();

  const CompiledJob* job_;
  ProgramReaders readers_;
  std::vector<const Tensor*> plugin_sources_;  ///< CompiledJob::plugin_sources
  size_t ops_ = 0;
  BatchPool pool_;
  std::vector<std::string> no_files_;
  int workers_ = 1;
  int64_t pass_ = -1;           ///< in which the readers stand; -1: nobody knows
  bool may_start_over_ = true;  ///< the readers were not moved: where they stand may be the end of an earlier run
  int64_t rows_ = 0;            ///< that the readers had given when the last turn ended

  std::mutex mutex_;
  std::condition_variable_any turn_ended_;
  bool is_taken_ = false;  ///< the turn
};

}  // namespace millrace
