#include "job/compiled_job.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "config/validate.h"
#include "datafeed/input_opener.h"
#include "job/job_mistakes.h"
#include "model/fleet_program.h"
#include "program/block_builder.h"
#include "program/counters.h"
#include "program/logit_variable.h"
#include "program/program_files.h"
#include "runtime/batch_check.h"
#include "serving/prune.h"

namespace millrace {
namespace {

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

/// The metrics that a job computes beside its program.
std::vector<MetricSpec> MetricsOfProgram(const ModelDesc& model) {
  std::vector<MetricSpec> metrics;
  for (const MetricDesc& metric : model.metric()) {
    metrics.push_back(
        {KindOf(metric), metric.in(), metric.label(), metric.group(), metric.max_rows(), metric.name(), ""});
  }
  return metrics;
}

/// Rows that cannot be read or written as Paddle's servers have theirs are told before anything is trained.
std::vector<ConfigMistake> FindUnservedTables(const TrainerDesc& desc, const CompiledModel& model) {
  std::vector<ConfigMistake> mistakes;
  const auto is_rows = [](const ServerTable& table) { return table.is_rows; };
  if (!std::any_of(model.server_tables.begin(), model.server_tables.end(), is_rows)) {
    const auto check = [&mistakes](bool has, const char* path) {
      if (!has) return;
      mistakes.push_back({path, "program.main looks up no rows of servers (distributed_lookup_table); leave it out"});
    };
    check(desc.program().has_server_dir(), "program.server_dir");
    check(desc.program().has_save_server_dir(), "program.save_server_dir");
    return mistakes;
  }
  if (!desc.program().has_save_server_dir()) return mistakes;
  for (const TableDesc& table : model.tables) {
    const OptimizerDesc& rule = table.optimizer();
    if (!table.has_vocabulary() && (table.has_accessor() || rule.has_sgd() || rule.has_adam())) continue;
    mistakes.push_back(
        {"program.save_server_dir",
         "the rows of table \"" + table.name() +
             "\" cannot be written for servers, which keep rows of accessors, sgd and adam by id; program.save_dir "
             "keeps them for Millrace"});
  }
  return mistakes;
}

/// What a startup program that runs has wrong is told with what the main program has, before anything runs.
Status CheckStartup(const TrainerDesc& desc, const CompiledModel& model, const Environment& environment,
                    const std::stop_token& stop) {
  const bool loads = desc.program().has_init_dir() && !FeedsItself(desc) && model.of_servers.empty();
  if (loads || !desc.program().has_startup()) return Status::Ok();
  CompileOptions options;
  options.device = environment.device;
  options.fuse = false;
  options.stop = stop;
  return Executable::Compile(model.startup, environment.ops, options).status().Context(desc.program().startup());
}

/// The form in which a model is trained. Operators that a job leaves out, or cuts into sections, are those of Paddle.
ModelForm FormOf(const TrainerDesc& desc) {
  const bool goes_by_operators = IsPipeline(desc) || TrainsInStep(desc) || desc.hogwild_param().skip_ops_size() > 0;
  return !desc.has_program() && desc.fuse() && !goes_by_operators ? ModelForm::kFused : ModelForm::kPaddle;
}

/// The programs: read from files, or the model lowered.
Result<std::shared_ptr<const CompiledModel>> ModelOf(const LoadedConfig& config, const SlotSchema& schema,
                                                     const Environment& environment, ModelForm form,
                                                     const std::stop_token& stop) {
  const TrainerDesc& desc = *config.desc;
  if (!desc.has_program()) {
    std::vector<ConfigMistake> mistakes;
    Result<CompiledModel> lowered = CompileModelOf(desc, schema, environment, form, &mistakes, stop);
    if (!mistakes.empty()) return config.Report(mistakes);
    MR_TRY(lowered.status());
    return std::make_shared<const CompiledModel>(std::move(lowered).value());
  }
  CompiledModel model;
  MR_ASSIGN(model.main, ReadProgram(desc.program().main()));
  if (desc.program().has_startup()) {
    MR_ASSIGN(model.startup, ReadProgram(desc.program().startup()));
  }
  // A mistake of either of these is told; the programs of any other job stay as they are.
  const bool has_servers = desc.model().table_size() > 0 || desc.model().has_optimizer();
  if (has_servers || IsOfFleet(model.main) || IsOfFleet(model.startup)) {
    std::vector<ConfigMistake> mistakes;
    Status taken = TakeOverFromServers(desc.model(), schema, environment.ops, environment, &model, &mistakes);
    if (!taken.ok()) taken = std::move(taken).Context(desc.program().main());
    if (taken.ok() && !mistakes.empty()) return config.Report(mistakes);
    if (!mistakes.empty()) return InvalidConfig(taken.message() + "\n" + config.Report(mistakes).message());
    MR_TRY(std::move(taken));
  }
  const std::vector<ConfigMistake> unserved = FindUnservedTables(desc, model);
  if (!unserved.empty()) return config.Report(unserved);
  model.test = model.main;
  model.metrics = MetricsOfProgram(desc.model());
  return std::make_shared<const CompiledModel>(std::move(model));
}

/// Whether a variable that `watched` names is missing.
bool Lacks(const ProgramDesc& program, const std::vector<std::string>& watched) {
  std::set<std::string_view> missing(watched.begin(), watched.end());
  for (const VarDesc& var : program.blocks(0).vars()) missing.erase(var.name());
  return !missing.empty();
}

std::vector<FetchItem> ResolveFetches(const FetchConfig& config, const std::vector<std::string>& metrics) {
  const auto metric_index = [&](const std::string& name) {
    return static_cast<size_t>(std::find(metrics.begin(), metrics.end(), name) - metrics.begin());
  };
  std::vector<FetchItem> fetches;
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
    fetches.push_back(std::move(item));
  }
  return fetches;
}

/// What is computed, or would be lost by fusion, because somebody reads it after a batch of training.
void AddFetches(const TrainerDesc& desc, const std::vector<FetchItem>& fetches, const ProgramDesc& main,
                const std::vector<std::string>& watched, std::vector<std::string>* names) {
  for (const std::string& name : VariablesOf(fetches)) names->push_back(name);
  for (const std::string& name : desc.check_nan_var_names()) names->push_back(name);
  for (const VarDesc& var : main.blocks(0).vars()) {
    if (IsDumped(desc, var.name())) names->push_back(var.name());
  }
  names->insert(names->end(), watched.begin(), watched.end());
  // What a program counts is a result of an inference, fetched or not.
  const auto counters = desc.infer() ? ForwardCountersOf(main) : std::vector<std::string>();
  names->insert(names->end(), counters.begin(), counters.end());
}

/// What workers run. Mistakes of the startup program come with those of the main one.
Result<std::unique_ptr<const Executable>> CompileTraining(const TrainerDesc& desc,
                                                          const std::shared_ptr<const CompiledModel>& model,
                                                          const Environment& environment,
                                                          const CompileOptions& options) {
  const std::shared_ptr<const ProgramDesc> program(model, desc.infer() ? &model->test : &model->main);
  auto train = Executable::Compile(program, environment.ops, options);
  if (train.status().code() == StatusCode::kCancelled) return train;
  Status startup = CheckStartup(desc, *model, environment, options.stop);
  if (!train.ok() && !startup.ok()) {
    return InvalidConfig(std::move(train).Context(desc.program().main()).status().message() + "\n" + startup.message());
  }
  MR_TRY(std::move(startup));
  return train;
}

/// What is cut before its updates takes the mean of what micro-batches push, and a table with an accessor gets counts.
Status CheckPushesNoCounts(const ProgramDesc& main) {
  for (const OpDesc& op : main.blocks(0).ops()) {
    if (op.type() != "sparse_table_push" || !InputArguments(op, "LearningRate").empty()) continue;
    return InvalidConfig(
        "not supported yet: table \"" + InputArguments(op, "Table").at(0) +
        "\" has an accessor, and pipelines take the mean of micro-batches, shows and clicks too; train "
        "it with class_name: \"MultiTrainer\"");
  }
  return Status::Ok();
}

Result<std::unique_ptr<const PipelineProgram>> CompileSections(const LoadedConfig& config, const ProgramDesc& main,
                                                               const Environment& environment,
                                                               const CompileOptions& options) {
  const auto& sections = config.desc->section_param().section_config();
  std::vector<std::vector<std::string>> cuts;
  for (int i = 0; i + 1 < sections.size(); ++i) {
    cuts.emplace_back(sections[i].section_out_var_names().begin(), sections[i].section_out_var_names().end());
  }
  MR_ASSIGN(std::unique_ptr<const PipelineProgram> pipeline, CompilePipeline(main, environment.ops, options, cuts));
  std::vector<ConfigMistake> mistakes;
  for (int s = 0; s < pipeline->sections(); ++s) {
    if (sections[s].concurrency() == 1) continue;
    const OpRange range = pipeline->forward(s);
    for (size_t i = range.begin; i < range.end; ++i) {
      const OpDesc& op = pipeline->step->ops()[i];
      for (const OpDesc::Var& output : op.outputs()) {
        for (const std::string& name : output.arguments()) {
          const auto meta = pipeline->step->vars().find(name);
          if (meta == pipeline->step->vars().end() || !meta->second.persistable) continue;
          mistakes.push_back({"section_param.section_config[" + std::to_string(s) + "].concurrency",
                              "concurrency must be 1: the section's operator " + op.type() + " keeps \"" + name +
                                  "\" from batch to batch"});
        }
      }
    }
  }
  if (!mistakes.empty()) return config.Report(mistakes);
  return pipeline;
}

Status CheckFetchesAreComputed(const LoadedConfig& config, const std::vector<FetchItem>& fetches,
                               const SlotSchema& schema, const Executable& train) {
  std::set<std::string> written;
  for (int block = 0; block < train.block_count(); ++block) {
    for (const OpDesc& op : train.ops(block)) {
      for (const OpDesc::Var& output : op.outputs()) {
        written.insert(output.arguments().begin(), output.arguments().end());
      }
    }
  }
  std::vector<ConfigMistake> mistakes;
  for (size_t i = 0; i < fetches.size(); ++i) {
    if (fetches[i].kind != FetchItem::Kind::kVariable) continue;
    const std::string& name = fetches[i].name;
    const auto meta = train.vars().find(name);
    const bool persistable = meta != train.vars().end() && meta->second.persistable;
    if (meta != train.vars().end() && meta->second.kind == VarType::READER) {
      mistakes.push_back({"fetch_config.fetch_var_names[" + std::to_string(i) + "]",
                          "\"" + name + "\" is a reader, which has no value to print; fetch what is read from it"});
      continue;
    }
    if (written.contains(name) || persistable || schema.Find(name) >= 0) continue;
    mistakes.push_back({"fetch_config.fetch_var_names[" + std::to_string(i) + "]",
                        "no operator of this run computes \"" + name + "\"" +
                            (config.desc->infer() ? ": infer has no gradients" : "")});
  }
  return mistakes.empty() ? Status::Ok() : config.Report(mistakes);
}

/// Whether an operator reads data by itself: a plugin's without inputs, which gives a tensor.
bool IsPluginSource(const Executable& train, const OpDesc& op) {
  const OpInfo& info = *train.registry().Find(op.type());
  if (info.plugin.empty() || !info.inputs.empty()) return false;
  if (op.outputs_size() == 0 || op.outputs(0).arguments_size() == 0) return false;
  const auto first = train.vars().find(op.outputs(0).arguments(0));
  return first != train.vars().end() && first->second.kind == VarType::LOD_TENSOR;
}

/// Why several workers cannot train a program that feeds itself; empty: they can.
std::string WhyOneThread(const SelfFeeding& program) {
  if (program.is_loop) {
    return "the while operator of program.main is a whole training, which one thread runs; put the step alone into the "
           "program, without the loop, or leave thread_num out: open_files has a thread_num for reading";
  }
  if (program.plugin_sources.empty()) return "";
  return "the operator that gives \"" + program.plugin_sources[0] +
         "\" reads by itself, and each worker would read all of its data; read from a reader, or leave thread_num out";
}

/// What a program that feeds itself must have, or cannot.
Result<SelfFeeding> FindReading(const LoadedConfig& config, const Executable& train) {
  SelfFeeding found;
  bool reads = false;
  int loops = 0;
  for (int block = 0; block < train.block_count(); ++block) {
    for (const OpDesc& op : train.ops(block)) {
      reads = reads || op.type() == "read";
      if (IsPluginSource(train, op)) found.plugin_sources.push_back(op.outputs(0).arguments(0));
      loops += block == 0 && op.type() == "while" ? 1 : 0;
    }
  }
  if (!reads && found.plugin_sources.empty()) {
    return InvalidConfig(
        "program.main: no operator reads from a reader, and the job has no data_desc and filelist to "
        "feed the program from: give them, or make readers in program.startup and read them");
  }
  if (loops > 1) {
    return InvalidConfig("program.main: block 0 has " + std::to_string(loops) +
                         " while operators; the training loop of a program that feeds itself is one: put loops that "
                         "follow each other into the block of one while");
  }
  found.is_loop = loops == 1;
  if (!reads && !found.is_loop) {
    return InvalidConfig("program.main: what gives \"" + found.plugin_sources[0] +
                         "\" has no end that ends an epoch; put the step into the block of a while operator");
  }
  if (found.is_loop && config.desc->epochs() != 1) {
    return config.Report({{"epochs", "the while operator of program.main says how long it trains; leave epochs out"}});
  }
  if (const std::string why = WhyOneThread(found); config.desc->thread_num() > 1 && !why.empty()) {
    const std::string threads = "thread_num is " + std::to_string(config.desc->thread_num()) + ": ";
    return config.Report({{"thread_num", threads + why}});
  }
  MR_TRY(CheckBatchVariables(train, nullptr).Context("program.main"));
  return found;
}

/// What evaluation runs. `options` are those of training.
Result<std::unique_ptr<const Executable>> CompileEvaluation(const TrainerDesc& desc,
                                                            const std::shared_ptr<const CompiledModel>& model,
                                                            const Environment& environment,
                                                            const CompileOptions& options) {
  if (!desc.has_program() || model->metrics.empty()) {
    return Executable::Compile(std::shared_ptr<const ProgramDesc>(model, &model->test), environment.ops, options);
  }
  // A program trains as it stands; what it predicts is evaluated without dropout, and with the statistics it learned.
  return Executable::Compile(ForwardProgram(model->test, environment.ops), environment.ops, options);
}

/// The forward part in operators of Paddle alone: that of `model`, or made for who asks, since few do and it is large.
Result<std::shared_ptr<const CompiledModel>> PaddleModelOf(const TrainerDesc& desc, const SlotSchema& schema,
                                                           const Environment& environment, ModelForm form,
                                                           const std::shared_ptr<const CompiledModel>& model,
                                                           const std::stop_token& stop) {
  if (form == ModelForm::kPaddle) return model;
  std::vector<ConfigMistake> mistakes;
  MR_ASSIGN(CompiledModel paddle,
            CompileModelOf(desc, schema, environment, ModelForm::kPaddleForward, &mistakes, stop));
  return std::make_shared<const CompiledModel>(std::move(paddle));
}

/// The metrics of a model that is not trained meanwhile: those that go by the order of examples read logits.
std::vector<MetricSpec> MetricsOfEvaluation(const CompiledModel& model) {
  std::vector<MetricSpec> specs = model.metrics;
  for (MetricSpec& spec : specs) spec.logit = LogitVariable(model.test, spec.prediction);
  return specs;
}

/// The forward part with what its calibrations are taken from, and the metrics that measure it.
Result<std::shared_ptr<const ProgramDesc>> MeasureCalibrations(const std::vector<CalibrationPlan>& plans,
                                                               const CompiledModel& model, const SlotSchema& schema,
                                                               const Environment& environment,
                                                               std::unique_ptr<const MetricSet>* metrics) {
  auto forward = std::make_shared<ProgramDesc>(model.test);
  MR_ASSIGN(const std::vector<MetricSpec> sums, AddCalibrationSums(plans, model, environment.ops, forward.get()));
  std::vector<MetricSpec> all = MetricsOfEvaluation(model);
  all.insert(all.end(), sums.begin(), sums.end());
  MR_ASSIGN(const MetricRegistry registry, WithCalibrationSums(environment.metrics));
  MR_ASSIGN(*metrics, MetricSet::Create(all, schema, registry, model.loss));
  return std::shared_ptr<const ProgramDesc>(std::move(forward));
}

Result<std::vector<ModelExport>> ExportsOf(const LoadedConfig& config, const CompiledModel& model,
                                           const Environment& environment, const std::string& output_dir) {
  std::vector<ConfigMistake> mistakes;
  std::vector<ModelExport> exports = PlanExports(*config.desc, model, environment.ops, output_dir, &mistakes);
  if (!mistakes.empty()) return config.Report(mistakes);
  for (const ModelExport& planned : exports) {
    MR_TRY(CheckFitsMemory(planned.program()).Context("output.export to \"" + planned.folder() + "\""));
  }
  return exports;
}

/// Workers, or pipelines, of which each reads with the threads of its first section.
int WorkersOf(const TrainerDesc& desc) {
  const int threads = desc.update_mode() == TrainerDesc::SERIAL ? 1 : std::max(1, desc.thread_num());
  return IsPipeline(desc) ? std::max(1, threads / desc.section_param().section_config(0).concurrency()) : threads;
}

}  // namespace

Result<std::shared_ptr<const CompiledJob>> CompiledJob::Create(LoadedConfig config, const Environment& environment,
                                                               std::string output_dir,
                                                               const std::vector<std::string>& watched,
                                                               const std::stop_token& stop) {
  const TrainerDesc& desc = *config.desc;
  if (desc.has_dist() && !environment.device->is_host()) {
    return InvalidConfig("dist: ranks sum gradients in the host's memory and cannot run on device \"" +
                         environment.device->name() + "\"");
  }
  if (IsPipeline(desc) && !environment.device->is_host()) {
    return InvalidConfig(
        "class_name: \"PipelineTrainer\": it sums gradients in the host's memory and cannot run on device \"" +
        environment.device->name() + "\"; use MultiTrainer");
  }
  Parts parts;
  parts.environment = &environment;
  parts.output_dir = std::move(output_dir);
  parts.workers = WorkersOf(desc);
  const bool feeds_itself = FeedsItself(desc);
  if (!feeds_itself) {
    MR_ASSIGN(parts.schema, SlotSchema::Create(desc.data_desc()));
  }
  parts.form = FormOf(desc);
  MR_ASSIGN(parts.model, ModelOf(config, parts.schema, environment, parts.form, stop));
  std::vector<ConfigMistake> unknown = FindUnfitMetrics(*parts.model, environment.metrics);
  if (!unknown.empty()) return config.Report(unknown);
  parts.loss = desc.has_program() ? LossOf(parts.model->main) : parts.model->loss;
  MR_ASSIGN(parts.metrics, MetricSet::Create(parts.model->metrics, parts.schema, environment.metrics, parts.loss));
  const std::vector<std::string> names = parts.metrics->names();
  unknown = FindUnknownNames(desc, *parts.model, names);
  if (parts.form == ModelForm::kFused && (!unknown.empty() || Lacks(parts.model->main, watched))) {
    // Somebody may want to see a variable of one slot.
    parts.form = ModelForm::kPaddle;
    MR_ASSIGN(parts.model, ModelOf(config, parts.schema, environment, parts.form, stop));
    unknown = FindUnknownNames(desc, *parts.model, names);
  }
  if (!unknown.empty()) return config.Report(unknown);
  const CompiledModel& model = *parts.model;
  parts.fetches = ResolveFetches(desc.fetch_config(), names);
  if (unknown = FindUnknownLoss(desc, parts.loss); !unknown.empty()) return config.Report(unknown);

  if (!feeds_itself) {
    MR_ASSIGN(parts.eval_metrics,
              MetricSet::Create(MetricsOfEvaluation(model), parts.schema, environment.metrics, parts.loss));
    if (desc.infer()) parts.metrics = std::move(parts.eval_metrics);
  }

  CompileOptions options;
  options.device = environment.device;
  options.fuse = desc.fuse();
  options.stop = stop;
  options.skip_ops = {desc.hogwild_param().skip_ops().begin(), desc.hogwild_param().skip_ops().end()};
  options.fetches = parts.metrics->Variables();
  if (!parts.loss.empty()) options.fetches.push_back(parts.loss);
  AddFetches(desc, parts.fetches, model.main, watched, &options.fetches);
  options.forward_only = desc.infer();
  MR_ASSIGN(parts.train, CompileTraining(desc, parts.model, environment, options));
  if (IsPipeline(desc)) {
    MR_TRY(CheckPushesNoCounts(model.main));
    MR_ASSIGN(parts.pipeline, CompileSections(config, model.main, environment, options));
  } else if (TrainsInStep(desc)) {
    MR_ASSIGN(parts.pipeline, CompilePipeline(model.main, environment.ops, options, {}));
  }
  MR_TRY(CheckFetchesAreComputed(config, parts.fetches, parts.schema, *parts.train));
  if (feeds_itself) {
    MR_ASSIGN(parts.self_feeding, FindReading(config, *parts.train));
  } else {
    options.forward_only = true;
    if (!desc.has_program() || !model.metrics.empty()) {
      options.fetches = (parts.eval_metrics != nullptr ? parts.eval_metrics : parts.metrics)->Variables();
      if (!parts.loss.empty()) options.fetches.push_back(parts.loss);
    }
    parts.eval_options = options;
    parts.eval_options.stop = {};  // a run that was stopped leaves the job whole for the next one
    if (!desc.infer() && desc.eval().calibration_size() > 0) {
      std::vector<ConfigMistake> mistakes;
      parts.calibrations = PlanCalibrations(desc, config.eval_sets, model, &mistakes);
      if (!mistakes.empty()) return config.Report(mistakes);
      MR_ASSIGN(parts.eval_program,
                MeasureCalibrations(parts.calibrations, model, parts.schema, environment, &parts.eval_metrics));
      parts.eval_options.fetches = parts.eval_metrics->Variables();
      parts.eval_options.fetches.push_back(parts.loss);
    }
    if (desc.has_program()) {
      MR_ASSIGN(parts.eval, CompileEvaluation(desc, parts.model, environment, options));
    }
  }
  if (stop.stop_requested()) return Cancelled("stopped while compiling the job");
  if (!desc.infer() && desc.output().export__size() > 0) {
    MR_ASSIGN(std::shared_ptr<const CompiledModel> exported,
              PaddleModelOf(desc, parts.schema, environment, parts.form, parts.model, stop));
    if (!parts.calibrations.empty()) {
      // What its numbers will be does not matter to whether the model can be written.
      std::vector<TaskCalibration> some;
      for (const CalibrationPlan& plan : parts.calibrations) {
        some.push_back({plan.task, plan.is_isotonic, "", 0, {}, ""});
        if (plan.is_isotonic) some.back().fit.points = some.back().fit.values = {0, 1};
      }
      MR_ASSIGN(exported, CalibratedModel(*exported, some, environment.ops));
    }
    MR_ASSIGN(parts.exports, ExportsOf(config, *exported, environment, parts.output_dir));
  }
  parts.config = std::move(config);
  return std::shared_ptr<const CompiledJob>(new CompiledJob(std::move(parts)));
}

Result<const Executable*> CompiledJob::eval() const {
  if (parts_.eval != nullptr) return parts_.eval.get();
  std::call_once(eval_asked_, [this] {
    eval_ = parts_.eval_program != nullptr
                ? Executable::Compile(parts_.eval_program, environment().ops, parts_.eval_options)
                : CompileEvaluation(desc(), parts_.model, environment(), parts_.eval_options);
  });
  MR_TRY(eval_.status());
  return eval_->get();
}

Result<std::shared_ptr<const CompiledModel>> CompiledJob::PaddleModel(const std::stop_token& stop) const {
  return PaddleModelOf(desc(), schema(), environment(), parts_.form, parts_.model, stop);
}

Result<std::vector<ModelExport>> CompiledJob::PlanExports(const CompiledModel& calibrated) const {
  return ExportsOf(config(), calibrated, environment(), output_dir());
}

bool CompiledJob::lines_are_piped() const { return !PipeCommandOf(desc().data_desc()).empty(); }

int64_t CompiledJob::passes() const {
  if (desc().infer()) return 1;
  return is_incremental() ? desc().incremental().pass_size() : desc().epochs();
}

const std::string& CompiledJob::PassName(int64_t pass) const {
  return desc().incremental().pass(static_cast<int>(pass)).name();
}

int64_t CompiledJob::FirstPass() const {
  if (!is_incremental()) return 0;
  const auto& passes = config().pass_files;
  const auto found = std::find_if(passes.begin(), passes.end(), [](const auto& files) { return !files.empty(); });
  return found == passes.end() ? 0 : found - passes.begin();
}

const std::vector<std::string>& CompiledJob::FilesOfPass(int64_t pass) const {
  return is_incremental() ? config().pass_files[static_cast<size_t>(pass)] : config().files;
}

}  // namespace millrace
