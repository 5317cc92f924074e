#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "batch/slot_schema.h"
#include "config/trainer_desc_reader.h"
#include "core/on_threads.h"
#include "core/wire.h"
#include "job/calibrated_model.h"
#include "job/environment.h"
#include "metrics/metric_set.h"
#include "model/model_compiler.h"
#include "runtime/executable.h"
#include "runtime/pipeline_program.h"
#include "serving/export_model.h"
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

/// How a program that feeds itself gets its data.
struct SelfFeeding {
  /// Whether the program is a whole training: a `while` stands in its main block.
  bool is_loop = false;
  /// What operators of plugins that take no input give: such an operator reads data without a reader's help, an example
  /// a row of its first output.
  std::vector<std::string> plugin_sources;
};

/// Whether ranks train step by step, all on the same parameters. Who infers has no steps.
inline bool TrainsInStep(const TrainerDesc& desc) {
  return desc.has_dist() && desc.dist().update() == DistDesc::SYNC && !desc.infer();
}
/// Of so many ranks those that have the rows of all and train nothing (dist { mode: SPLIT }). One rank does all.
inline int RankServers(const TrainerDesc& desc, int ranks) {
  return ranks > 1 && desc.dist().mode() == DistDesc::SPLIT ? desc.dist().servers() : 0;
}
/// Batches of a step of a job that trains in step, of all ranks.
inline int MicroBatches(const TrainerDesc& desc) { return std::max(1, desc.dist().micro_batches()); }

/// What a TrainerDesc says, compiled: programs, metrics, what is fetched and exported, and which files a pass reads.
///
/// Immutable and thread-safe: any number of sessions run it, at the same time too (job/job_session.h). Refers to
/// the environment, which outlives it, and to no file or parameter.
class CompiledJob {
 public:
  /// Compiles; reads no data. `watched` are variables that a FetchHandler of a session wants to see: fusion keeps them.
  /// All mistakes of the model, or of a program, come back in one kInvalidConfig. A stop request ends it: kCancelled.
  static Result<std::shared_ptr<const CompiledJob>> Create(LoadedConfig config, const Environment& environment,
                                                           std::string output_dir,
                                                           const std::vector<std::string>& watched = {},
                                                           const std::stop_token& stop = {});

  const TrainerDesc& desc() const { return *parts_.config.desc; }
  const LoadedConfig& config() const { return parts_.config; }
  const Environment& environment() const { return *parts_.environment; }
  const std::string& output_dir() const { return parts_.output_dir; }
  /// The slots of data_desc; none of a program that feeds itself.
  const SlotSchema& schema() const { return parts_.schema; }
  /// The programs as they are trained (ModelForm); names of prediction, label, feeds. With `program`, prediction and
  /// label are empty, and metrics are those that the job computes beside it.
  const CompiledModel& model() const { return *parts_.model; }
  /// The same for who saves it: its `test` has Paddle's operators alone, each by itself; its main may be empty. It is
  /// made for each call, in time and memory by the number of slots. A stop request ends that: kCancelled.
  Result<std::shared_ptr<const CompiledModel>> PaddleModel(const std::stop_token& stop) const;
  /// output.export, planned for such a model with calibrated predictions.
  Result<std::vector<ModelExport>> PlanExports(const CompiledModel& calibrated) const;
  /// The variable that gradients are taken of; empty: a program's that takes none.
  const std::string& loss() const { return parts_.loss; }
  /// What workers run: everything, or the forward part of an `infer` job.
  const Executable& train() const { return *parts_.train; }
  /// Whether the job is one of ranks that train together.
  bool is_dist() const { return desc().has_dist(); }
  bool trains_in_step() const { return TrainsInStep(desc()); }
  /// How floats travel between ranks.
  WireFloat wire_float() const {
    return desc().dist().wire() == DistDesc::BF16 ? WireFloat::kBFloat16 : WireFloat::kFloat32;
  }
  /// Batches between two exchanges of dist { update: GEO }; 0: there are none.
  int geo_steps() const {
    return desc().dist().update() == DistDesc::GEO && !desc().infer() ? desc().dist().geo_steps() : 0;
  }
  int rank_servers(int ranks) const { return RankServers(desc(), ranks); }
  int rank_micro_batches() const { return MicroBatches(desc()); }
  /// Whether workers are pipelines of sections.
  bool has_sections() const { return pipeline() != nullptr && !is_dist(); }
  /// The program with its updates apart: the sections of a PipelineTrainer's job, or the one section of a job of ranks;
  /// null for others.
  const PipelineProgram* pipeline() const { return parts_.pipeline.get(); }
  /// What a worker's frames run for a batch.
  const Executable& step() const { return pipeline() != nullptr ? *pipeline()->step : train(); }
  /// Batches after which a pipeline updates.
  int micro_batches() const { return std::max(1, desc().section_param().num_microbatches()); }
  /// Forward part alone, with predictions and loss; what evaluation runs. Not of a program that feeds itself. That of a
  /// model, of which nothing can be wrong where train() compiled, is compiled when it is first asked for.
  Result<const Executable*> eval() const;
  const MetricSet& metrics() const { return *parts_.metrics; }
  /// What evaluations measure: metrics(), by logits where they can, and behind these what calibrations are taken from.
  const MetricSet& eval_metrics() const { return parts_.eval_metrics ? *parts_.eval_metrics : metrics(); }
  /// eval.calibration, by loss; none of an `infer` job.
  const std::vector<CalibrationPlan>& calibrations() const { return parts_.calibrations; }
  const std::vector<FetchItem>& fetches() const { return parts_.fetches; }
  /// output.export, in its order.
  const std::vector<ModelExport>& exports() const { return parts_.exports; }
  /// Whether the program reads its data itself, through readers: its sessions have no dataset then.
  bool feeds_itself() const { return parts_.self_feeding.has_value(); }
  /// Only of a program that feeds itself.
  bool is_loop() const { return parts_.self_feeding->is_loop; }
  const std::vector<std::string>& plugin_sources() const { return parts_.self_feeding->plugin_sources; }
  /// Whether lines are those that a pipe_command wrote, as in RunContext.
  bool lines_are_piped() const;
  /// Workers, or pipelines.
  int workers() const { return parts_.workers; }
  /// Threads for what is done while the workers stand still: a job of few workers has the other processors for it. In a
  /// job of ranks these are other ranks'.
  int threads_at_rest() const { return is_dist() ? workers() : std::max(workers(), ThreadsHere()); }
  /// Whether passes have files of their own; an `infer` job reads filelist.
  bool is_incremental() const { return desc().has_incremental() && !desc().infer(); }
  /// Passes over the input: epochs, or the days of an incremental job; one of an `infer` job.
  int64_t passes() const;
  /// Of an incremental job.
  const std::string& PassName(int64_t pass) const;
  /// The first pass whose files are there: those of passes that are trained may be gone.
  int64_t FirstPass() const;
  /// The files that a pass reads, in order.
  const std::vector<std::string>& FilesOfPass(int64_t pass) const;

 private:
  struct Parts {
    LoadedConfig config;
    const Environment* environment = nullptr;
    std::string output_dir;
    int workers = 1;
    SlotSchema schema;
    ModelForm form = ModelForm::kPaddle;
    std::shared_ptr<const CompiledModel> model;
    std::unique_ptr<const MetricSet> metrics;
    std::unique_ptr<const MetricSet> eval_metrics;  ///< null: metrics
    std::vector<CalibrationPlan> calibrations;
    std::shared_ptr<const ProgramDesc> eval_program;  ///< null: the model's
    std::vector<FetchItem> fetches;
    std::string loss;
    std::unique_ptr<const Executable> train;
    std::unique_ptr<const PipelineProgram> pipeline;
    std::unique_ptr<const Executable> eval;  ///< of a program
    CompileOptions eval_options;
    std::optional<SelfFeeding> self_feeding;  ///< nullopt: a dataset feeds the program
    std::vector<ModelExport> exports;
  };
  explicit CompiledJob(Parts parts) : parts_(std::move(parts)) {}

  const Parts parts_;
  mutable std::once_flag eval_asked_;
  mutable Result<std::unique_ptr<const Executable>> eval_{std::unique_ptr<const Executable>()};  ///< of a model
};

}  // namespace millrace
