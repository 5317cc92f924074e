#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "batch/label_range_monitor.h"
#include "config/trainer_desc_reader.h"
#include "core/span_log.h"
#include "dataset/dataset.h"
#include "dataset/in_memory_dataset.h"
#include "device_worker/nan_check.h"
#include "kernels/row_locks.h"
#include "metrics/metric_set.h"
#include "model/model_compiler.h"
#include "runtime/executable.h"
#include "runtime/pipeline_program.h"
#include "serving/export_model.h"
#include "trainer/environment.h"
#include "trainer/fetch_handler.h"
#include "trainer/job_mistakes.h"
#include "trainer_desc.pb.h"

namespace millrace {

/// One entry of fetch_config: a metric's value (over the pass so far, or since the last print), or a variable.
struct FetchItem {
  enum class Kind : uint8_t { kVariable, kMetric, kWindowMetric };
  Kind kind = Kind::kVariable;
  std::string name;   ///< variable, or the metric's name
  std::string label;  ///< what is printed
  size_t metric = 0;  ///< index in MetricSet::names()
};

/// A job made ready to run: programs compiled, datasets built, and a root scope for the parameters.
///
/// Owns everything that workers share, but the environment. Immutable but for the root scope, the datasets, and what
/// the run counts and traces.
class Job {
 public:
  /// Compiles and builds; reads no data and makes no parameters. `environment` must outlive the job. All mistakes of
  /// the model, or of a program, come back in one kInvalidConfig.
  /// `fetch_handler` outlives the job too; null: none. A stop request ends the look at many files: kCancelled.
  static Result<std::unique_ptr<Job>> Create(LoadedConfig config, const Environment& environment,
                                             std::string output_dir, FetchHandler* fetch_handler = nullptr,
                                             const std::stop_token& stop = {});

  /// Makes the parameters, in place of those that are there: runs the startup program, or loads program.init_dir.
  /// Frames that were made before end with the old ones. A stop request ends a startup program in a loop: kCancelled.
  Status InitParameters(std::stop_token stop = {});
  /// Trains on parameters that exist already, instead of InitParameters; returns those that were here. Null: none.
  std::unique_ptr<Scope> ExchangeParameters(std::unique_ptr<Scope> root) {
    return std::exchange(root_, std::move(root));
  }
  /// Trains on a dataset that exists already and is made as the job's own; returns the one that was here. Before a
  /// trainer is made, and after it is gone.
  std::unique_ptr<Dataset> ExchangeDataset(std::unique_ptr<Dataset> dataset) {
    return std::exchange(dataset_, std::move(dataset));
  }

  const TrainerDesc& desc() const { return *config_.desc; }
  const LoadedConfig& config() const { return config_; }
  const Environment& environment() const { return *environment_; }
  const std::string& output_dir() const { return output_dir_; }
  /// The programs as authored or lowered; names of prediction, label, feeds. With `program`, prediction and label are
  /// empty, and metrics are those that the job computes beside it.
  const CompiledModel& model() const { return model_; }
  /// The variable that gradients are taken of; empty: a program's that takes none.
  const std::string& loss() const { return loss_; }
  /// What workers run: everything, or the forward part of an `infer` job.
  const Executable& train() const { return *train_; }
  /// The sections of a PipelineTrainer's job; null for others.
  const PipelineProgram* pipeline() const { return pipeline_.get(); }
  /// What a worker's frames run for a batch.
  const Executable& step() const { return pipeline_ != nullptr ? *pipeline_->step : *train_; }
  /// Batches after which a pipeline updates.
  int micro_batches() const { return std::max(1, desc().section_param().num_microbatches()); }
  /// Forward part alone, with predictions and loss; what evaluation runs.
  const Executable& eval() const { return *eval_; }
  const MetricSet& metrics() const { return *metrics_; }
  const std::vector<FetchItem>& fetches() const { return fetches_; }
  /// output.export, in its order.
  const std::vector<ModelExport>& exports() const { return exports_; }
  /// Labels that losses and metrics had no meaning for, so far; filled by the frames.
  LabelRangeMonitor& label_monitor() const { return *label_monitor_; }
  /// Losses that were NaN or infinite and did not end the run (allow_non_finite), so far; filled by the workers.
  const NonFiniteLosses& non_finite_losses() const { return *non_finite_losses_; }
  /// What a worker looks at for NaN after each batch.
  NanCheckRule nan_check_rule() const;
  FetchHandler* fetch_handler() const { return fetch_handler_; }
  /// Whether the program reads its data itself, through readers: there is no dataset then, nor an eval().
  bool feeds_itself() const { return dataset_ == nullptr; }
  /// Whether a program that feeds itself is a whole training: a `while` stands in its main block.
  bool is_loop() const { return is_loop_; }
  /// What operators of plugins that take no input give: such an operator of a program that feeds itself reads data
  /// without a reader's help, an example a row of its first output.
  const std::vector<std::string>& plugin_sources() const { return plugin_sources_; }
  Dataset& dataset() const { return *dataset_; }
  /// The slots of the dataset; none of a program that feeds itself.
  const SlotSchema& schema() const { return feeds_itself() ? no_slots_ : dataset_->schema(); }
  /// What the dataset's readers did, with output.trace; null otherwise.
  SpanLog* spans() const { return spans_.get(); }
  /// Null without an evaluation set.
  Dataset* eval_dataset() const { return eval_dataset_.get(); }
  /// The evaluation's text loaded into memory, with the zeros and merged lines of the job's own dataset.
  Result<std::unique_ptr<InMemoryDataset>> LoadEvaluationRows(std::stop_token stop) const;
  Scope& root() { return *root_; }
  const Scope& root() const { return *root_; }
  /// Workers, or pipelines.
  int workers() const { return workers_; }
  /// Outputs of the embedding layers: what online callers feed. Empty with `program`.
  std::vector<std::string> pooled() const { return PooledOf(desc().model()); }
  /// Whether passes have files of their own; an `infer` job reads filelist.
  bool is_incremental() const { return desc().has_incremental() && !desc().infer(); }
  /// Passes over the input: epochs, or the days of an incremental job; one of an `infer` job.
  int64_t passes() const;
  /// Of an incremental job.
  const std::string& PassName(int64_t pass) const;
  /// The files that a pass reads, in order.
  const std::vector<std::string>& FilesOfPass(int64_t pass) const;
  /// Options of worker `index`'s frame.
  FrameOptions frame_options(int index, bool read_only);

 private:
  Job() = default;
  Status CompilePrograms();
  void ResolveFetches();
  Status CheckFetchesAreComputed() const;
  Status CompileSections(const CompileOptions& options);
  Status BuildDatasets(const std::stop_token& stop);
  Status PlanExports();
  Status BuildIncrementalDataset(const DatasetSettings& settings);
  /// Whether an operator reads data by itself: a plugin's without inputs, which gives a tensor.
  bool IsPluginSource(const OpDesc& op) const;
  /// What a program that feeds itself must have, or cannot.
  Status CheckReaderProgram();

  LoadedConfig config_;
  const Environment* environment_ = nullptr;
  std::string output_dir_;
  FetchHandler* fetch_handler_ = nullptr;
  int workers_ = 1;
  CompiledModel model_;
  std::vector<FetchItem> fetches_;
  std::vector<ModelExport> exports_;
  std::unique_ptr<const MetricSet> metrics_;
  std::unique_ptr<RowLocks> row_locks_;
  std::unique_ptr<LabelRangeMonitor> label_monitor_;
  std::unique_ptr<NonFiniteLosses> non_finite_losses_ = std::make_unique<NonFiniteLosses>();
  std::string loss_;
  std::unique_ptr<Scope> root_;
  std::unique_ptr<const Executable> train_;
  std::unique_ptr<const Executable> eval_;
  std::unique_ptr<const PipelineProgram> pipeline_;
  std::unique_ptr<SpanLog> spans_;
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Dataset> eval_dataset_;
  SlotSchema no_slots_;
  bool is_loop_ = false;
  std::vector<std::string> plugin_sources_;
};

}  // namespace millrace
