#include "serving/predictor.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "config/feed_names.h"
#include "core/contained_file.h"
#include "core/edit_distance.h"
#include "core/file.h"
#include "core/harmless_text.h"
#include "core/on_threads.h"
#include "datafeed/data_feed.h"
#include "inference_model.pb.h"
#include "kernels/packed_weights.h"
#include "program/logit_variable.h"
#include "program/op_check.h"
#include "program/program_files.h"
#include "program/text_proto.h"
#include "program/var_meta.h"
#include "runtime/batch_check.h"
#include "runtime/variable_store.h"
#include "serving/feed_lists.h"
#include "serving/inference_model.h"
#include "serving/paddle_model.h"

namespace millrace {
namespace {

Result<ModelFeed> FindFeed(const InferenceModel& model, const std::string& name, const std::string& folder) {
  std::string known;
  for (const ModelFeed& feed : model.feed()) {
    if (feed.name() == name) return feed;
    known += (known.empty() ? "" : ", ") + feed.name();
  }
  return InvalidConfig("model \"" + folder + "\" has no feed \"" + name + "\"; it has: " + known);
}

/// Removes the tables that `program` does not read. Fails with kBadData for an operator that creates anything else.
Status KeepTablesOf(const ProgramDesc& program, const std::string& path, ProgramDesc* tables) {
  BlockDesc kept;
  for (const OpDesc& op : tables->blocks(0).ops()) {
    if (op.type() != "create_sparse_table") {
      return BadData("\"" + path + "\" makes tables and nothing else, but has the operator " + op.type());
    }
    const std::vector<std::string> made = OutputArguments(op, "Out");
    if (!made.empty() && FindVar(program, made[0]) != nullptr) *kept.add_ops() = op;
  }
  for (const VarDesc& var : tables->blocks(0).vars()) {
    if (FindVar(program, var.name()) != nullptr) *kept.add_vars() = var;
  }
  kept.set_idx(0);
  kept.set_parent_idx(-1);
  *tables->mutable_blocks(0) = std::move(kept);
  return Status::Ok();
}

std::string Shown(const ModelPlugin& plugin) {
  return "plugin \"" + Harmless(plugin.name()) + "\"" +
         (plugin.version().empty() ? "" : " (version " + Harmless(plugin.version()) + ")");
}

/// Fails for operators of plugins that were loaded for training and are missing here.
Status CheckPlugins(const InferenceModel& model, const ProgramDesc& program, const OpRegistry& registry) {
  std::set<std::string_view> missing;
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      if (registry.Find(op.type()) == nullptr) missing.insert(op.type());
    }
  }
  std::string problems;
  for (const ModelPlugin& plugin : model.plugin()) {
    for (const std::string& type : plugin.operators()) {
      if (!missing.contains(type)) continue;
      problems +=
          "the model needs the operator \"" + Harmless(type) + "\" of " + Shown(plugin) + ", which is not loaded\n";
    }
  }
  if (problems.empty()) return Status::Ok();
  return InvalidConfig(problems + "  " + registry.plugin_advice());
}

/// The loaded version of the model's plugin if it differs: "plugin "p" (version 2)"; empty if it is equal or not
/// loaded.
std::string OtherVersion(const ModelPlugin& plugin, const OpRegistry& registry, const DataFeedFactory* feeds) {
  const auto shown = [&](const std::string& path, const std::string& version) {
    ModelPlugin loaded;
    loaded.set_name(std::filesystem::path(path).stem().string());
    loaded.set_version(version);
    return version == plugin.version() ? "" : Shown(loaded) + (version.empty() ? ", which says no version," : "");
  };
  for (const std::string& type : plugin.operators()) {
    const OpInfo* const info = registry.Find(type);
    if (info != nullptr && !info->plugin.empty()) return shown(info->plugin, info->plugin_version);
  }
  const auto* const origin = feeds == nullptr ? nullptr : feeds->PluginOf(plugin.data_feed());
  return origin == nullptr ? "" : shown(origin->path, origin->version);
}

/// The predicted variable: the requested one, or the only one.
Result<std::string> ChoosePrediction(const std::vector<std::string>& fetches, const std::string& wanted) {
  std::string names;
  for (const std::string& name : fetches) {
    if (name == wanted || (wanted.empty() && fetches.size() == 1)) return name;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (wanted.empty()) return InvalidConfig("the model returns several variables; choose one by --prediction: " + names);
  return InvalidConfig("the model does not return \"" + wanted + "\"; it returns: " + names);
}

/// The tasks of our model: its losses, or its only prediction.
std::vector<ModelTask> TasksOf(const InferenceModel& model) {
  std::vector<ModelTask> tasks(model.task().begin(), model.task().end());
  if (!tasks.empty()) return tasks;
  tasks.emplace_back();
  tasks.back().set_prediction(model.prediction());
  tasks.back().set_label(model.label());
  return tasks;
}

/// The variables of these tasks, without duplicates.
std::vector<std::string> PredictionsOf(const std::vector<ModelTask>& tasks) {
  std::vector<std::string> names;
  for (const ModelTask& task : tasks) {
    if (std::find(names.begin(), names.end(), task.prediction()) == names.end()) names.push_back(task.prediction());
  }
  return names;
}

/// All tasks, or the one requested by name or variable.
Result<std::vector<ModelTask>> ChooseTasks(std::vector<ModelTask> tasks, const std::string& wanted) {
  if (wanted.empty()) return tasks;
  for (const bool by_name : {true, false}) {
    for (const ModelTask& task : tasks) {
      if ((by_name ? task.name() : task.prediction()) == wanted) return std::vector<ModelTask>{task};
    }
  }
  std::string names;
  for (const ModelTask& task : tasks) {
    names += (names.empty() ? "" : ", ") + (task.name().empty() ? task.prediction() : task.name());
  }
  return InvalidConfig("the model does not return \"" + wanted + "\"; it returns: " + names);
}

/// The line format for a Paddle model: the caller's, the folder's, or a slot per fed variable.
Result<DataFeedDesc> PaddleLines(const PaddleModelFiles& files, const ProgramDesc& program,
                                 const std::vector<std::string>& feeds) {
  if (files.data_feed.empty()) return FeedLines(program, feeds);
  MR_ASSIGN(const std::string text, ReadFile(files.data_feed));
  DataFeedDesc desc;
  MR_TRY(ParseTextProto(text, files.data_feed, &desc));
  return desc;
}

Status CheckFed(const SlotSchema& schema, const std::vector<std::string>& feeds) {
  for (const std::string& name : feeds) {
    if (schema.Find(name) >= 0) continue;
    std::vector<std::string_view> slots;
    for (const SlotSpec& slot : schema.used()) slots.push_back(slot.name);
    return InvalidConfig("the model is fed with \"" + name + "\", but the lines have no such slot" +
                         DidYouMean(name, slots));
  }
  return Status::Ok();
}

/// Fails with kInvalidConfig for a prediction that is not a tensor, or that no operator computes.
Status CheckPrediction(const Executable& executable, const std::string& name) {
  if (executable.vars().at(name).kind != VarType::LOD_TENSOR) {
    return InvalidConfig("the model predicts \"" + name + "\", which is no tensor");
  }
  for (int block = 0; block < executable.block_count(); ++block) {
    for (const OpDesc& op : executable.ops(block)) {
      for (const OpDesc::Var& output : op.outputs()) {
        const auto& names = output.arguments();
        if (std::find(names.begin(), names.end(), name) != names.end()) return Status::Ok();
      }
    }
  }
  return InvalidConfig("the model predicts \"" + name + "\", which none of its operators computes");
}

}  // namespace

Predictor::Predictor() : packed_weights_(std::make_unique<PackedWeights>()) {}

Predictor::~Predictor() = default;

Result<std::unique_ptr<const Predictor>> Predictor::Load(const std::string& folder, const OpRegistry& registry,
                                                         const PredictorOptions& options) {
  std::unique_ptr<Predictor> predictor(new Predictor);
  MR_TRY(predictor->LoadAny(folder, registry, options));
  return std::unique_ptr<const Predictor>(std::move(predictor));
}

Result<LoadedModel> Predictor::LoadProgram(const std::string& folder, const OpRegistry& registry,
                                           std::stop_token stop) {
  Predictor predictor;
  PredictorOptions options;
  options.every_prediction = true;
  options.stop = std::move(stop);
  MR_TRY(predictor.LoadAny(folder, registry, options));
  return LoadedModel{*predictor.program_, std::move(predictor.feeds_), std::move(predictor.fetches_),
                     predictor.seed_,     std::move(predictor.root_),  std::move(predictor.warnings_)};
}

Status Predictor::LoadAny(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options) {
  root_ = std::make_unique<Scope>();
  plugin_advice_ = registry.plugin_advice();
  const bool is_own = MayBeThere(folder + "/MODEL");
  return Harmless(is_own ? LoadOwn(folder, registry, options) : LoadPaddle(folder, registry, options));
}

Status Predictor::CheckLines(const DataFeedFactory& feeds) const {
  if (data_desc_.name().empty()) return Status::Ok();
  Status known = feeds.CheckName(data_desc_.name());
  if (known.ok()) return known;
  return InvalidConfig(
      Harmless(known.message(), "\n\t") +
      (lines_plugin_.empty() ? "" : "\n  the model's lines were read by " + lines_plugin_ + ", which is not loaded") +
      (plugin_advice_.empty() ? "" : "\n  " + plugin_advice_));
}

Status Predictor::LoadOwn(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options) {
  MR_ASSIGN(const InferenceModel model, ReadInferenceModel(folder, ThreadsHere(), options.stop));
  const bool has_targets = model.target_size() > 0;
  MR_ASSIGN(const ModelFeed feed,
            FindFeed(model, options.every_prediction && has_targets ? "targets" : options.feed, folder));
  feeds_ = {feed.vars().begin(), feed.vars().end()};
  data_desc_ = options.data_desc != nullptr ? *options.data_desc : feed.data_desc();
  if (const FeatureStates& trained = feed.data_desc().feature_states();
      trained.has_text_rule() && !data_desc_.feature_states().has_text_rule() && data_desc_.feature_size() > 0) {
    data_desc_.mutable_feature_states()->set_text_rule(trained.text_rule());
  }
  if (options.every_prediction && has_targets) {
    fetches_ = {model.target().begin(), model.target().end()};
  } else {
    fetches_ = PredictionsOf(TasksOf(model));
  }
  if (!options.every_prediction) {
    MR_ASSIGN(tasks_, ChooseTasks(TasksOf(model), options.prediction));
  }
  seed_ = model.seed();
  for (const ModelSlotShare& share : model.slot_share()) {
    slot_shares_[share.slot()] = {share.rows(), share.empty(), share.ids(), share.unknown()};
  }
  MR_ASSIGN(const std::string program_path, FileInFolder(folder, feed.program()));
  MR_ASSIGN(ProgramDesc program, ReadProgram(program_path));
  MR_TRY(FeedGiven(options.given, &program));
  MR_TRY(CheckPlugins(model, program, registry));
  for (const ModelPlugin& plugin : model.plugin()) {
    if (plugin.data_feed() == data_desc_.name()) lines_plugin_ = Shown(plugin);
    if (plugin.version().empty()) continue;
    const std::string loaded = OtherVersion(plugin, registry, options.feeds);
    if (loaded.empty()) continue;
    warnings_.push_back("the model was saved with " + Shown(plugin) + ", and " + loaded +
                        " is loaded: what it computes or reads may differ; load the version that the model was saved "
                        "with, or save the model anew");
  }
  MR_ASSIGN(const std::string tables_path, FileInFolder(folder, "program_tables"));
  MR_ASSIGN(ProgramDesc tables, ReadProgram(tables_path));
  MR_TRY(KeepTablesOf(program, tables_path, &tables));
  MR_TRY(RunStartup(tables, registry, *root_, model.seed(), nullptr, nullptr, options.stop));
  MR_TRY(RestoreVariables(folder, {model.variable().begin(), model.variable().end()}, *root_, nullptr, ThreadsHere(),
                          {options.stop}));
  return Compile(program, registry, options);
}

Status Predictor::LoadPaddle(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options) {
  Result<PaddleModelFiles> found = FindPaddleModel(folder);
  if (found.status().code() == StatusCode::kNotFound) return NoModelIn(folder, " and no *.pdmodel of Paddle");
  MR_ASSIGN(const PaddleModelFiles files, std::move(found));
  if (options.feed != "offline") {
    return InvalidConfig("a model of Paddle has one feed list; --feed=" + options.feed +
                         " is for models that trainer saved. Name another model of the folder by its prefix: " +
                         folder + "/" + options.feed);
  }
  FeedFetch lists;
  MR_ASSIGN(ProgramDesc program, ReadPaddleProgram(files, &lists));
  feeds_ = lists.feeds;
  fetches_ = lists.fetches;
  if (!options.every_prediction) {
    tasks_.emplace_back();
    MR_ASSIGN(*tasks_.back().mutable_prediction(), ChoosePrediction(fetches_, options.prediction));
  }
  if (options.data_desc != nullptr) {
    data_desc_ = *options.data_desc;
  } else {
    MR_ASSIGN(data_desc_, PaddleLines(files, program, feeds_));
  }
  MR_TRY(LoadPaddleParameters(files, program, *root_, options.stop));
  MR_TRY(FeedGiven(options.given, &program));
  return Compile(program, registry, options);
}

/// Removes the operators that compute `given`.
Status Predictor::FeedGiven(const std::vector<std::string>& given, ProgramDesc* program) {
  if (given.empty()) return Status::Ok();
  std::vector<std::string_view> known;
  for (const VarDesc& var : program->blocks(0).vars()) known.push_back(var.name());
  for (const std::string& name : given) {
    if (FindVar(*program, name) != nullptr) continue;
    return InvalidConfig("the model has no variable \"" + name + "\" to feed" + DidYouMean(name, known));
  }
  ResolveZeros("", &data_desc_);
  MR_ASSIGN(FeedList list, OnlineFeed(*program, PredictionsOf(tasks_), given, data_desc_));
  *program = std::move(list.program);
  feeds_ = std::move(list.vars);
  data_desc_ = std::move(list.data_desc);
  return Status::Ok();
}

Status Predictor::Compile(ProgramDesc program, const OpRegistry& registry, const PredictorOptions& wanted) {
  ResolveZeros("", &data_desc_);
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(data_desc_));
  MR_TRY(CheckFed(schema, feeds_));
  schema_ = std::make_unique<const SlotSchema>(std::move(schema));
  MR_TRY(CheckWithoutEffects(program, registry));
  CompileOptions options;
  options.fetches = tasks_.empty() ? fetches_ : PredictionsOf(tasks_);
  options.forward_only = true;
  options.stop = wanted.stop;
  for (const ModelTask& task : tasks_) {
    if (!wanted.keeps_logits) break;
    const std::string logit = LogitVariable(program, task.prediction());
    orders_.push_back(logit.empty() ? task.prediction() : logit);
    if (!logit.empty()) options.fetches.push_back(logit);
  }
  program_ = std::make_shared<const ProgramDesc>(std::move(program));
  MR_ASSIGN(executable_, Executable::Compile(program_, registry, options));
  for (const ModelTask& task : tasks_) {
    MR_TRY(CheckPrediction(*executable_, task.prediction()));
    scores_of_.push_back(static_cast<size_t>(std::max<int64_t>(1, ClassesOf(*program_, task.prediction()))));
  }
  return Status::Ok();
}

std::vector<std::string> Predictor::columns() const {
  std::vector<std::string> names;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    const std::string& name = tasks_[task].name().empty() ? tasks_[task].prediction() : tasks_[task].name();
    for (size_t i = 0; i < scores_of_[task]; ++i) {
      names.push_back(scores_of_[task] == 1 ? name : name + "[" + std::to_string(i) + "]");
    }
  }
  return names;
}

Result<std::unique_ptr<PredictSession>> PredictSession::Create(const Predictor& predictor, const SlotSchema& schema,
                                                               int max_rows, const std::vector<std::string>* files) {
  std::unique_ptr<PredictSession> session(new PredictSession);
  session->files_ = files;
  FrameOptions options;
  options.max_rows = max_rows;
  options.seed = predictor.seed_;
  options.read_only = true;
  options.packed_weights = predictor.packed_weights_.get();
  MR_ASSIGN(session->frame_, Frame::Create(*predictor.executable_, &schema, *predictor.root_, options));
  MR_ASSIGN(session->watch_,
            SlotWatch::Create(*predictor.executable_, predictor.data_desc_, schema, *predictor.root_, true));
  for (size_t task = 0; task < predictor.tasks_.size(); ++task) {
    const size_t scores = predictor.scores_of_[task];
    const std::string& name = predictor.tasks_[task].prediction();
    MR_ASSIGN(const Tensor* const prediction, session->Find(name));
    session->predictions_.push_back({name, prediction, scores});
    session->columns_ += scores;
    if (predictor.orders_.empty()) continue;
    MR_ASSIGN(const Tensor* const order, session->Find(predictor.orders_[task]));
    session->orders_.push_back({predictor.orders_[task], order, scores});
  }
  session->scores_.reserve(static_cast<size_t>(max_rows) * session->columns());
  return session;
}

Result<const Tensor*> PredictSession::Find(const std::string& name) const {
  const Variable* const found = frame_->Find(name);
  if (found == nullptr || !found->Is<Tensor>()) return Internal("the model's program has no tensor \"" + name + "\"");
  return &found->Get<Tensor>();
}

Result<std::span<const float>> PredictSession::Run(const SlotBatch& batch, std::stop_token stop) {
  RunContext context;
  context.stop = std::move(stop);
  context.batch = &batch;
  context.file_names = files_;
  context.rows = batch.rows();
  if (const Status ran = frame_->Run(context); !ran.ok()) return Harmless(ran);
  MR_TRY(watch_.Look(batch));
  scores_.resize(static_cast<size_t>(batch.rows()) * columns());
  logits_.resize(orders_.empty() ? 0 : scores_.size());
  size_t first = 0;
  for (size_t task = 0; task < predictions_.size(); ++task) {
    MR_TRY(Take(predictions_[task], batch.rows(), first, &scores_));
    if (!orders_.empty()) MR_TRY(Take(orders_[task], batch.rows(), first, &logits_));
    first += predictions_[task].scores;
  }
  return std::span<const float>(scores_);
}

/// Copies the scores of a prediction to the columns starting at `first`.
Status PredictSession::Take(const Prediction& prediction, int rows, size_t first, std::vector<float>* into) const {
  const Tensor& tensor = *prediction.tensor;
  const auto count = static_cast<size_t>(rows);
  const size_t width = count == 0 ? prediction.scores : static_cast<size_t>(tensor.numel()) / count;
  if (!HasRowOfEach(tensor, rows) || width < prediction.scores) {
    return InvalidConfig("\"" + prediction.name + "\" is " + tensor.dims().ToString() + " for " + std::to_string(rows) +
                         " rows, and predictions have a score or more for each of them");
  }
  if (tensor.dtype() != DType::kFloat32) {
    return InvalidConfig("\"" + prediction.name + "\" is " + std::string(DTypeName(tensor.dtype())) +
                         ", and predictions are float32");
  }
  // For two classes, the last value is the click's.
  const float* values = tensor.data<float>() + (width - prediction.scores);
  for (size_t row = 0; row < count; ++row, values += width) {
    std::copy_n(values, prediction.scores, &(*into)[row * columns() + first]);
  }
  return Status::Ok();
}

}  // namespace millrace
