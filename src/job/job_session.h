#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "batch/label_range_monitor.h"
#include "core/span_log.h"
#include "data_feed.pb.h"
#include "dataset/dataset.h"
#include "dataset/dataset_factory.h"
#include "dataset/stream_dataset.h"
#include "device_worker/nan_check.h"
#include "job/compiled_job.h"
#include "job/fetch_handler.h"
#include "kernels/packed_weights.h"
#include "kernels/row_locks.h"
#include "ranks/rank_file_queue.h"
#include "ranks/rank_group.h"
#include "runtime/frame.h"
#include "runtime/scope.h"

namespace millrace {

struct EvalReport;

/// What a session works on that exists already and outlives it; null: it makes its own.
struct SessionInputs {
  Scope* root = nullptr;  ///< with the job's parameters
  Dataset* dataset = nullptr;
  FetchHandler* fetch_handler = nullptr;  ///< of the variables that the job was compiled to watch; null: none
  RankGroup* ranks = nullptr;             ///< that run the job together; null: this process is its only rank
};

/// One run of a compiled job, and all that it changes: parameters, datasets, row locks, counts and traces.
///
/// Made by one thread, then shared by the threads of its trainer. Sessions of a job share nothing that changes, unless
/// they are given the same inputs: they may run at the same time.
class JobSession {
 public:
  /// Builds the datasets; reads no data and makes no parameters. A stop request ends the look at many files:
  /// kCancelled.
  static Result<std::unique_ptr<JobSession>> Create(std::shared_ptr<const CompiledJob> job,
                                                    const SessionInputs& inputs = {}, const std::stop_token& stop = {});

  /// Makes the parameters, in place of those that are there: runs the startup program, or loads program.init_dir. Not
  /// of a session that was given a root scope. Frames that were made before end with the old ones. A stop request ends
  /// it: kCancelled, with some of them made.
  Status InitParameters(const std::stop_token& stop = {});
  /// Makes tables anew that started with rows, of program.init_dir or server_dir: those of a checkpoint take their
  /// place.
  Status EmptyTables();

  const CompiledJob& job() const { return *job_; }
  Scope& root() { return *root_; }
  const Scope& root() const { return *root_; }
  /// Not of a program that feeds itself.
  Dataset& dataset() const { return *dataset_; }
  /// The evaluation sets of LoadedConfig::eval_sets, in their order. In a job of ranks each reads this rank's share of
  /// the files.
  std::vector<Dataset*> eval_datasets() const;
  bool has_evaluations() const { return !eval_datasets_.empty(); }
  FetchHandler* fetch_handler() const { return fetch_handler_; }
  RankGroup& ranks() const { return *ranks_; }
  /// Sources of the dataset that this rank trains from.
  int sources() const;
  /// The streams that the files of a pass are dealt to: those of a step, or one for each rank that trains, or as
  /// SetInputStreams says.
  int InputStreams(int64_t pass) const;
  /// Of a job with `dist` and an in-memory dataset of the session's own, before it is loaded: the files of `pass`,
  /// where each pass has its own, else of all passes, are dealt to as many streams as in the run that this one goes on
  /// from, which ranks share out. Ranks beyond these read nothing.
  Status SetInputStreams(int64_t pass, int streams);
  /// For a run that goes on from a checkpoint of an earlier version, before anything is read: makes the datasets anew,
  /// which draw lines by the rules of then (DrawnBy). A dataset that the session was given stays. kCancelled.
  Status DrawLinesAsBefore(const std::stop_token& stop);
  bool draws_lines_as_before() const { return draws_lines_as_before_; }
  /// Of a job with `dist`: the streams of evaluation files that this rank reads, whose sums are kept apart, so that any
  /// number of ranks adds them up in the same order; 0 where all sources of a rank belong together.
  int EvalStreams() const;
  /// Whether this process writes files and the terminal.
  bool leads() const { return ranks_->leads(); }
  /// Labels that losses and metrics had no meaning for, so far; filled by the frames.
  LabelRangeMonitor& label_monitor() { return label_monitor_; }
  /// Losses that were NaN or infinite and did not end the run (allow_non_finite), so far; filled by the workers.
  const NonFiniteLosses& non_finite_losses() const { return non_finite_losses_; }
  /// What models of the step that was evaluated last are calibrated by; null: nothing.
  void SetCalibrations(const EvalReport& report);
  const std::shared_ptr<const Calibrations>& calibrations() const { return calibrations_; }
  /// Keeps what the slots' values were in an evaluation, for the next one and for models.
  void SetSlotShares(const EvalReport& report);
  /// Of the set of this name, or, where it is "", of the first one; null: it was not evaluated.
  const SlotShares* SlotSharesOf(const std::string& set) const;
  const SlotShares& first_slot_shares() const { return first_slot_shares_; }
  /// Adds the zones of the times that a pass trained to those that evaluations and models compare others with: in the
  /// order of a year, summer comes after the first rows.
  void AddTrainedZones(const ValueNames& trained);
  /// feature_states.time of the job, and what was added.
  const google::protobuf::RepeatedPtrField<FeatureStates::ColumnTime>& trained_times() const { return trained_times_; }
  /// What the dataset's readers did, with output.trace; null otherwise.
  SpanLog* spans() const { return spans_.get(); }
  /// What a worker looks at for NaN after each batch.
  NanCheckRule nan_check_rule();
  /// Options of worker `index`'s frame.
  FrameOptions frame_options(int index, bool read_only);
  /// Before read-only frames run over parameters that may have changed since they ran last.
  void RenewPackedWeights() { packed_weights_.Renew(); }

 private:
  JobSession(std::shared_ptr<const CompiledJob> job, const SessionInputs& inputs);
  Status JoinRanks();
  Status SetServers();
  Status BuildDatasets(const std::stop_token& stop);
  DatasetSettings SettingsOfDataset() const;
  Result<std::unique_ptr<Dataset>> MakeDataset(const DatasetSettings& settings) const;
  Result<std::unique_ptr<Dataset>> MakeEvalDataset(size_t set, const DatasetSettings& settings) const;
  /// Of the files of a job, or of a day.
  Result<std::unique_ptr<Dataset>> MakeDatasetOfPass(int64_t pass, std::vector<std::string> files,
                                                     const DatasetSettings& settings) const;
  /// In a job of ranks the files of `share`, where the settings do not say who reads which.
  Result<std::unique_ptr<Dataset>> MakeDatasetOf(std::vector<std::string> files, DataFeedDesc feed,
                                                 const DatasetSettings& settings, const StreamShare& share) const;
  /// Whether ranks take files as they get free.
  bool TakesFiles() const;
  /// The streams of files that this rank reads otherwise.
  StreamShare OwnStreams(int64_t pass) const;

  static constexpr int64_t kAnyPass = -1;

  std::shared_ptr<const CompiledJob> job_;
  FetchHandler* fetch_handler_;
  LabelRangeMonitor label_monitor_;
  NonFiniteLosses non_finite_losses_;
  std::shared_ptr<const Calibrations> calibrations_;
  std::map<std::string, SlotShares> slot_shares_;  ///< by evaluation set
  SlotShares first_slot_shares_;                   ///< of the first set
  google::protobuf::RepeatedPtrField<FeatureStates::ColumnTime> trained_times_;
  std::unique_ptr<RowLocks> row_locks_;
  PackedWeights packed_weights_;  ///< for read-only frames
  std::unique_ptr<SpanLog> spans_;
  std::unique_ptr<RankGroup> own_ranks_;  ///< of a session that was given none
  RankGroup* ranks_;
  int input_streams_ = 0;               ///< 0: one for each rank that trains
  int64_t pass_of_streams_ = kAnyPass;  ///< which these are of
  bool draws_lines_as_before_ = false;
  std::unique_ptr<RankFileQueue> rank_files_;  ///< of a job of ranks
  TableFactory tables_;                        ///< classes of the job's tables
  std::unique_ptr<Scope> own_root_;
  std::unique_ptr<Dataset> own_dataset_;
  std::vector<std::unique_ptr<Dataset>> eval_datasets_;
  Scope* root_;
  Dataset* dataset_;
};

/// kInvalidConfig where so many ranks are more than a step in step has batches for.
Status CheckRanksOfStep(const TrainerDesc& desc, int ranks);

}  // namespace millrace
