#include "trainer/job.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "config/feed_names.h"
#include "config/validate.h"
#include "core/edit_distance.h"
#include "core/machine_memory.h"
#include "dataset/incremental_dataset.h"
#include "program/block_builder.h"
#include "program/program_files.h"
#include "program/var_meta.h"
#include "runtime/batch_check.h"
#include "runtime/persistables.h"
#include "serving/prune.h"

namespace millrace {
namespace {

UpdateMode ToUpdateMode(TrainerDesc::UpdateMode mode) {
  switch (mode) {
    case TrainerDesc::HOGWILD: return UpdateMode::kHogwild;
    case TrainerDesc::ROW_LOCK: return UpdateMode::kRowLock;
    case TrainerDesc::SERIAL: return UpdateMode::kSerial;
  }
  return UpdateMode::kSerial;
}

std::vector<std::string> VariablesOf(const std::vector<FetchItem>& fetches) {
  std::vector<std::string> names;
  for (const FetchItem& item : fetches) {
    if (item.kind == FetchItem::Kind::kVariable) names.push_back(item.name);
  }
  return names;
}

bool IsPipeline(const TrainerDesc& desc) { return desc.class_name() == "PipelineTrainer"; }

bool IsDumped(const TrainerDesc& desc, const std::string& name) {
  const auto has = [&name](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return has(desc.dump_fields()) || has(desc.dump_param());
}

/// Variables that are to be kept, and that no operator of the job ever gives a value: a checkpoint could not be
/// written.
Status CheckKept(const ProgramDesc& program, const Scope& root) {
  const std::set<std::string> written = WrittenVariables(program);
  std::string unmade;
  for (const VarDesc& var : program.blocks(0).vars()) {
    const VarType::Type kind = var.type().type();
    const bool kept = var.persistable() && (kind == VarType::LOD_TENSOR || kind == VarType::SPARSE_TABLE);
    if (!kept || written.contains(var.name())) continue;
    const Variable* variable = root.Find(var.name());
    const bool has_value =
        variable != nullptr && !variable->empty() && !(variable->Is<Tensor>() && variable->Get<Tensor>().empty());
    if (!has_value) unmade += (unmade.empty() ? "\"" : ", \"") + var.name() + "\"";
  }
  if (unmade.empty()) return Status::Ok();
  return InvalidConfig("persistable variables that nothing gives a value: " + unmade +
                       "; the startup program is to write them, or program.main not to declare them persistable");
}

/// What the gradient that an operator begins with is of; empty for other operators. Where a program has no roles, a
/// gradient begins with a constant.
std::string LossOf(const OpDesc& op) {
  constexpr std::string_view kSuffix = "@GRAD";
  const OpDesc::Attr* role = FindAttr(op, "op_role");
  if (role == nullptr && op.type() != "fill_constant") return "";
  const auto number = [&] { return role->has_l() ? role->l() : role->i(); };
  if (role != nullptr && number() != static_cast<int64_t>(OpRole::kLossGradient)) return "";
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (name.ends_with(kSuffix)) return name.substr(0, name.size() - kSuffix.size());
    }
  }
  return "";
}

/// The loss of a program that was written elsewhere: what its gradients begin at, within a loop too; empty without
/// gradients.
std::string LossOf(const ProgramDesc& program) {
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      if (std::string loss = LossOf(op); !loss.empty()) return loss;
    }
  }
  return "";
}

/// A job that goes by the loss of a program must have one.
std::vector<ConfigMistake> FindUnknownLoss(const TrainerDesc& desc, const std::string& loss) {
  std::vector<ConfigMistake> mistakes;
  if (!desc.has_program() || !loss.empty()) return mistakes;
  const auto check = [&mistakes](const std::string& path, const std::string& metric) {
    if (metric != "loss") return;
    mistakes.push_back({path, "program.main has no gradients that say what its loss is; name one of model.metric"});
  };
  check("eval.early_stopping.metric", desc.eval().early_stopping().metric());
  check("checkpoint.keep_best", desc.checkpoint().keep_best());
  check("feature_importance.metric", desc.feature_importance().metric());
  return mistakes;
}

/// Whether the tensors that a program keeps fit into this machine: asked before the first of them is made.
Status CheckMemory(const ProgramDesc& program) {
  double bytes = 0;
  double most = 0;
  std::string largest;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (!var.persistable() || var.type().type() != VarType::LOD_TENSOR) continue;
    MR_ASSIGN(const VarMeta meta, ToMeta(var));
    auto size = static_cast<double>(SizeOf(meta.dtype));
    for (const int64_t axis : meta.dims.sizes()) size *= static_cast<double>(std::max<int64_t>(axis, 0));
    bytes += size;
    if (size > most) largest = "\"" + var.name() + "\" " + meta.dims.ToString();
    most = std::max(most, size);
  }
  const double memory = PhysicalMemory();
  if (bytes <= memory) return Status::Ok();
  return InvalidConfig("the parameters and what their optimizers keep need " + Gibibytes(bytes) +
                       ", and this machine has " + Gibibytes(memory) + "; the largest is " + largest +
                       ": make it smaller, or leave out the vocabulary of a table, which then grows as ids come");
}

/// The metrics that a job computes beside its program; what the slots say against them are mistakes of the file.
Result<std::vector<MetricSpec>> MetricsOfProgram(const ModelDesc& model, const SlotSchema& schema,
                                                 const LoadedConfig& config) {
  std::vector<MetricSpec> metrics;
  std::vector<ConfigMistake> mistakes;
  for (int i = 0; i < model.metric_size(); ++i) {
    const MetricDesc& metric = model.metric(i);
    const std::string path = "model.metric[" + std::to_string(i) + "].";
    const SlotId label = schema.Find(metric.label());
    if (label >= 0 && schema.used()[static_cast<size_t>(label)].width != 1) {
      mistakes.push_back({path + "label", "slot \"" + metric.label() + "\" must have one value an example"});
    }
    metrics.push_back({KindOf(metric), metric.in(), metric.label(), metric.group(), metric.max_rows()});
  }
  if (!mistakes.empty()) return config.Report(mistakes);
  return metrics;
}

/// What a startup program that runs has wrong is told with what the main program has, before anything runs.
Status CheckStartup(const TrainerDesc& desc, const ProgramDesc& startup, const Environment& environment) {
  const bool loads = desc.program().has_init_dir() && !FeedsItself(desc);
  if (loads || !desc.program().has_startup()) return Status::Ok();
  CompileOptions options;
  options.device = environment.device;
  options.fuse = false;
  return Executable::Compile(startup, environment.ops, options).status().Context(desc.program().startup());
}

}  // namespace

Result<std::unique_ptr<Job>> Job::Create(LoadedConfig config, const Environment& environment, std::string output_dir,
                                         FetchHandler* fetch_handler, const std::stop_token& stop) {
  std::unique_ptr<Job> job(new Job);
  job->config_ = std::move(config);
  job->environment_ = &environment;
  job->output_dir_ = std::move(output_dir);
  job->fetch_handler_ = fetch_handler;
  const bool serial = job->desc().update_mode() == TrainerDesc::SERIAL;
  job->workers_ = serial ? 1 : std::max(1, job->desc().thread_num());
  if (IsPipeline(job->desc())) {
    // A pipeline reads with the threads of its first section.
    job->workers_ = std::max(1, job->workers_ / job->desc().section_param().section_config(0).concurrency());
  }
  if (IsPipeline(job->desc()) && !environment.device->is_host()) {
    return InvalidConfig(
        "class_name: \"PipelineTrainer\": it sums gradients in the host's memory and cannot run on device \"" +
        environment.device->name() + "\"; use MultiTrainer");
  }
  job->label_monitor_ = job->desc().has_program()
                            ? std::make_unique<LabelRangeMonitor>()
                            : std::make_unique<LabelRangeMonitor>(job->desc().model().loss().label());
  if (job->desc().update_mode() == TrainerDesc::ROW_LOCK) job->row_locks_ = std::make_unique<RowLocks>();
  MR_TRY(job->BuildDatasets(stop));
  MR_TRY(job->CompilePrograms());
  if (!job->desc().infer()) MR_TRY(job->PlanExports());
  return job;
}

Status Job::BuildDatasets(const std::stop_token& stop) {
  if (FeedsItself(desc())) return Status::Ok();
  DatasetSettings settings = DatasetSettings::FromDesc(desc());
  settings.threads = workers_;
  if (IsPipeline(desc()) && !desc().dataset().has_prefetch_batches()) {
    settings.prefetch_batches = 2 * micro_batches() * workers_;
  }
  settings.output_dir = output_dir_;
  settings.stop = stop;
  if (desc().output().trace()) spans_ = std::make_unique<SpanLog>();
  settings.spans = spans_.get();
  const DatasetFactory& factory = environment_->datasets;
  if (is_incremental()) {
    MR_TRY(BuildIncrementalDataset(settings));
  } else {
    MR_ASSIGN(dataset_, factory.Create(desc().dataset().class_name(), desc().data_desc(), config_.files,
                                       environment_->feeds, settings));
  }
  if (config_.eval_files.empty() || desc().infer()) return Status::Ok();
  // Evaluation streams its files in whatever order: no shuffle, every row.
  DataFeedDesc feed = desc().data_desc();
  feed.set_drop_last(false);
  MR_ASSIGN(eval_dataset_, factory.Create(desc().dataset().class_name(), feed, config_.eval_files, environment_->feeds,
                                          settings.ForEvaluation()));
  return Status::Ok();
}

Status Job::BuildIncrementalDataset(const DatasetSettings& settings) {
  const auto make = [this, settings](std::vector<std::string> files) {
    return environment_->datasets.Create(desc().dataset().class_name(), desc().data_desc(), std::move(files),
                                         environment_->feeds, settings);
  };
  // Whatever the desc has wrong is known before anything is trained.
  MR_TRY(make(config_.pass_files[0]).status());
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(desc().data_desc()));
  std::vector<DatasetPass> passes;
  for (size_t i = 0; i < config_.pass_files.size(); ++i) {
    passes.push_back({desc().incremental().pass(static_cast<int>(i)).name(), config_.pass_files[i]});
  }
  dataset_ = std::make_unique<IncrementalDataset>(std::move(schema), std::move(passes), make);
  return Status::Ok();
}

int64_t Job::passes() const {
  if (desc().infer()) return 1;
  return is_incremental() ? desc().incremental().pass_size() : desc().epochs();
}

const std::string& Job::PassName(int64_t pass) const {
  return desc().incremental().pass(static_cast<int>(pass)).name();
}

const std::vector<std::string>& Job::FilesOfPass(int64_t pass) const {
  return is_incremental() ? config_.pass_files[static_cast<size_t>(pass)] : config_.files;
}

Result<std::unique_ptr<InMemoryDataset>> Job::LoadEvaluationRows(std::stop_token stop) const {
  DataFeedDesc feed = desc().data_desc();
  feed.set_drop_last(false);
  if (desc().dataset().class_name() == "QueueDataset") ForgetOwnFeed(&feed);
  InMemoryDatasetOptions options;
  options.threads = workers_;
  options.rows = DatasetSettings::FromDesc(desc()).ForEvaluation().rows;
  options.feeds = environment_->feeds;
  options.output_dir = output_dir_;
  MR_ASSIGN(std::unique_ptr<InMemoryDataset> rows,
            InMemoryDataset::Create(feed, config_.eval_files, std::move(options)));
  MR_TRY(rows->LoadIntoMemory(std::move(stop)).status());
  return rows;
}

Status Job::CompilePrograms() {
  const SlotSchema& schema = this->schema();
  if (desc().has_program()) {
    MR_ASSIGN(model_.main, ReadProgram(desc().program().main()));
    if (desc().program().has_startup()) {
      MR_ASSIGN(model_.startup, ReadProgram(desc().program().startup()));
    }
    model_.test = model_.main;
    MR_ASSIGN(model_.metrics, MetricsOfProgram(desc().model(), schema, config_));
  } else {
    std::vector<ConfigMistake> mistakes;
    Result<CompiledModel> model = CompileModelOf(desc(), schema, *environment_, &mistakes);
    if (!mistakes.empty()) return config_.Report(mistakes);
    MR_ASSIGN(model_, std::move(model));
  }
  MR_ASSIGN(metrics_, MetricSet::Create(model_.metrics, schema, environment_->metrics));
  if (const auto unknown = FindUnknownNames(desc(), model_, metrics_->names()); !unknown.empty()) {
    return config_.Report(unknown);
  }
  ResolveFetches();
  loss_ = desc().has_program() ? LossOf(model_.main) : model_.loss;
  if (const auto unknown = FindUnknownLoss(desc(), loss_); !unknown.empty()) return config_.Report(unknown);

  CompileOptions options;
  options.device = environment_->device;
  options.fuse = desc().fuse();
  options.skip_ops = {desc().hogwild_param().skip_ops().begin(), desc().hogwild_param().skip_ops().end()};
  options.fetches = metrics_->Predictions();
  if (!loss_.empty()) options.fetches.push_back(loss_);
  CompileOptions eval_options = options;
  for (const std::string& name : VariablesOf(fetches_)) options.fetches.push_back(name);
  for (const std::string& name : desc().check_nan_var_names()) options.fetches.push_back(name);
  for (const VarDesc& var : model_.main.blocks(0).vars()) {
    if (IsDumped(desc(), var.name())) options.fetches.push_back(var.name());
  }
  if (fetch_handler_ != nullptr) {
    for (const auto& [key, name] : fetch_handler_->variables()) options.fetches.push_back(name);
  }
  options.forward_only = desc().infer();
  auto train = Executable::Compile(desc().infer() ? model_.test : model_.main, environment_->ops, options);
  Status startup = CheckStartup(desc(), model_.startup, *environment_);
  if (!train.ok() && !startup.ok()) {
    return InvalidConfig(std::move(train).Context(desc().program().main()).status().message() + "\n" +
                         startup.message());
  }
  MR_TRY(std::move(startup));
  MR_ASSIGN(train_, std::move(train));
  if (IsPipeline(desc())) MR_TRY(CompileSections(options));
  MR_TRY(CheckFetchesAreComputed());
  if (feeds_itself()) return CheckReaderProgram();
  eval_options.forward_only = true;
  if (desc().has_program() && !model_.metrics.empty()) {
    // A program trains as it stands; what it predicts is evaluated without dropout, and with the statistics it learned.
    const ProgramDesc test = ForwardProgram(model_.test, environment_->ops);
    MR_ASSIGN(eval_, Executable::Compile(test, environment_->ops, eval_options));
    return Status::Ok();
  }
  if (desc().has_program()) eval_options.fetches = options.fetches;
  MR_ASSIGN(eval_, Executable::Compile(model_.test, environment_->ops, eval_options));
  return Status::Ok();
}

bool Job::IsPluginSource(const OpDesc& op) const {
  const OpInfo& info = *environment_->ops.Find(op.type());
  if (info.plugin.empty() || !info.inputs.empty()) return false;
  if (op.outputs_size() == 0 || op.outputs(0).arguments_size() == 0) return false;
  const auto first = train_->vars().find(op.outputs(0).arguments(0));
  return first != train_->vars().end() && first->second.kind == VarType::LOD_TENSOR;
}

Status Job::CheckReaderProgram() {
  bool reads = false;
  int loops = 0;
  for (int block = 0; block < train_->block_count(); ++block) {
    for (const OpDesc& op : train_->ops(block)) {
      reads = reads || op.type() == "read";
      if (IsPluginSource(op)) plugin_sources_.push_back(op.outputs(0).arguments(0));
      loops += block == 0 && op.type() == "while" ? 1 : 0;
    }
  }
  if (!reads && plugin_sources_.empty()) {
    return InvalidConfig(
        "program.main: no operator reads from a reader, and the job has no data_desc and filelist to "
        "feed the program from: give them, or make readers in program.startup and read them");
  }
  if (loops > 1) {
    return InvalidConfig("program.main: block 0 has " + std::to_string(loops) +
                         " while operators; the training loop of a program that feeds itself is one: put loops that "
                         "follow each other into the block of one while");
  }
  is_loop_ = loops == 1;
  if (!reads && !is_loop_) {
    return InvalidConfig("program.main: what gives \"" + plugin_sources_[0] +
                         "\" has no end that ends an epoch; put the step into the block of a while operator");
  }
  if (is_loop_ && desc().epochs() != 1) {
    return config_.Report({{"epochs", "the while operator of program.main says how long it trains; leave epochs out"}});
  }
  return CheckBatchVariables(*train_, nullptr).Context("program.main");
}

Status Job::PlanExports() {
  std::vector<ConfigMistake> mistakes;
  exports_ = millrace::PlanExports(desc(), model_, environment_->ops, output_dir_, &mistakes);
  if (!mistakes.empty()) return config_.Report(mistakes);
  for (const ModelExport& planned : exports_) {
    MR_TRY(CheckMemory(planned.program()).Context("output.export to \"" + planned.folder() + "\""));
  }
  return Status::Ok();
}

Status Job::CompileSections(const CompileOptions& options) {
  const auto& sections = desc().section_param().section_config();
  std::vector<std::vector<std::string>> cuts;
  for (int i = 0; i + 1 < sections.size(); ++i) {
    cuts.emplace_back(sections[i].section_out_var_names().begin(), sections[i].section_out_var_names().end());
  }
  MR_ASSIGN(pipeline_, CompilePipeline(model_.main, environment_->ops, options, cuts));
  std::vector<ConfigMistake> mistakes;
  for (int s = 0; s < pipeline_->sections(); ++s) {
    if (sections[s].concurrency() == 1) continue;
    const OpRange range = pipeline_->forward(s);
    for (size_t i = range.begin; i < range.end; ++i) {
      const OpDesc& op = pipeline_->step->ops()[i];
      for (const OpDesc::Var& output : op.outputs()) {
        for (const std::string& name : output.arguments()) {
          const auto meta = pipeline_->step->vars().find(name);
          if (meta == pipeline_->step->vars().end() || !meta->second.persistable) continue;
          mistakes.push_back({"section_param.section_config[" + std::to_string(s) + "].concurrency",
                              "concurrency must be 1: the section's operator " + op.type() + " keeps \"" + name +
                                  "\" from batch to batch"});
        }
      }
    }
  }
  return mistakes.empty() ? Status::Ok() : config_.Report(mistakes);
}

Status Job::CheckFetchesAreComputed() const {
  std::set<std::string> written;
  for (int block = 0; block < train_->block_count(); ++block) {
    for (const OpDesc& op : train_->ops(block)) {
      for (const OpDesc::Var& output : op.outputs()) {
        written.insert(output.arguments().begin(), output.arguments().end());
      }
    }
  }
  std::vector<ConfigMistake> mistakes;
  for (size_t i = 0; i < fetches_.size(); ++i) {
    if (fetches_[i].kind != FetchItem::Kind::kVariable) continue;
    const std::string& name = fetches_[i].name;
    const auto meta = train_->vars().find(name);
    const bool persistable = meta != train_->vars().end() && meta->second.persistable;
    if (meta != train_->vars().end() && meta->second.kind == VarType::READER) {
      mistakes.push_back({"fetch_config.fetch_var_names[" + std::to_string(i) + "]",
                          "\"" + name + "\" is a reader, which has no value to print; fetch what is read from it"});
      continue;
    }
    if (written.contains(name) || persistable || schema().Find(name) >= 0) continue;
    mistakes.push_back(
        {"fetch_config.fetch_var_names[" + std::to_string(i) + "]",
         "no operator of this run computes \"" + name + "\"" + (desc().infer() ? ": infer has no gradients" : "")});
  }
  return mistakes.empty() ? Status::Ok() : config_.Report(mistakes);
}

void Job::ResolveFetches() {
  const FetchConfig& config = desc().fetch_config();
  const std::vector<std::string>& metrics = metrics_->names();
  const auto metric_index = [&](const std::string& name) {
    return static_cast<size_t>(std::find(metrics.begin(), metrics.end(), name) - metrics.begin());
  };
  for (int i = 0; i < config.fetch_var_names_size(); ++i) {
    FetchItem item;
    item.name = config.fetch_var_names(i);
    item.label = i < config.fetch_var_str_format_size() ? config.fetch_var_str_format(i) : item.name;
    constexpr std::string_view kWindow = "batch_";
    const bool windowed = item.name.starts_with(kWindow);
    if (item.metric = metric_index(item.name); item.metric < metrics.size()) {
      item.kind = FetchItem::Kind::kMetric;
    } else if (item.metric = metric_index(windowed ? item.name.substr(kWindow.size()) : "");
               item.metric < metrics.size()) {
      item.kind = FetchItem::Kind::kWindowMetric;
    }
    fetches_.push_back(std::move(item));
  }
}

Status Job::InitParameters(std::stop_token stop) {
  root_ = std::make_unique<Scope>(*environment_->device);
  MR_TRY(CheckMemory(model_.main));
  const bool loads = desc().has_program() && desc().program().has_init_dir();
  // Readers are made by the startup program, wherever the parameters start.
  if (!loads || feeds_itself()) {
    Status started = RunStartup(model_.startup, environment_->ops, *root_, desc().seed(), &environment_->readers,
                                &environment_->tables, std::move(stop));
    if (!started.ok() && desc().program().has_startup()) {
      return std::move(started).Context(desc().program().startup());
    }
    MR_TRY(std::move(started));
  }
  if (loads) MR_TRY(LoadPersistables(model_.main, desc().program().init_dir(), *root_, environment_->tables).status());
  return desc().infer() ? Status::Ok() : CheckKept(model_.main, *root_);
}

NanCheckRule Job::nan_check_rule() const {
  const auto& names = desc().check_nan_var_names();
  NanCheckRule rule;
  rule.names = {names.begin(), names.end()};
  rule.folder = output_dir_;
  // What does not train spoils nothing: its metrics say nan.
  if (!desc().infer()) rule.loss = loss_;
  if (desc().allow_non_finite()) rule.passed = non_finite_losses_.get();
  return rule;
}

FrameOptions Job::frame_options(int index, bool read_only) {
  FrameOptions options;
  options.worker = index;
  options.workers = workers_;
  options.max_rows = desc().data_desc().batch_size();
  options.seed = desc().seed();
  options.update_mode = ToUpdateMode(desc().update_mode());
  options.bf16 = desc().precision() == TrainerDesc::BF16;
  options.read_only = read_only;
  options.row_locks = row_locks_.get();
  options.label_monitor = label_monitor_.get();
  options.is_program = desc().has_program();
  if (IsPipeline(desc())) options.worker = 0;  // random operators are those of one worker, whatever the sections
  options.readers = &environment_->readers;
  options.tables = &environment_->tables;
  const auto& private_vars = desc().hogwild_param().stat_var_names();
  if (index > 0) options.private_vars = {private_vars.begin(), private_vars.end()};
  return options;
}

}  // namespace millrace
