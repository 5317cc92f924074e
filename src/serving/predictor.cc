#include "serving/predictor.h"

#include <google/protobuf/text_format.h>

#include <filesystem>

#include "core/edit_distance.h"
#include "core/file.h"
#include "core/sealed_text.h"
#include "framework/var_meta.h"
#include "inference_model.pb.h"
#include "program/program_files.h"
#include "program/text_proto.h"
#include "program/variable_store.h"
#include "serving/paddle_model.h"

namespace millrace {
namespace {

constexpr int kFormatVersion = 1;

Result<InferenceModel> ReadModel(const std::string& folder) {
  const std::string path = folder + "/MODEL";
  MR_ASSIGN(const std::string text, ReadSealedText(path));
  InferenceModel model;
  if (!google::protobuf::TextFormat::ParseFromString(text, &model)) {
    return BadData("\"" + path + "\" is not a model that this version reads");
  }
  if (model.format_version() != kFormatVersion) {
    return BadData("\"" + path + "\" has format version " + std::to_string(model.format_version()) +
                   "; this program reads version " + std::to_string(kFormatVersion));
  }
  MR_TRY(CheckStoredFiles(folder, {model.file().begin(), model.file().end()}));
  return model;
}

Result<ModelFeed> FindFeed(const InferenceModel& model, const std::string& name, const std::string& folder) {
  std::string known;
  for (const ModelFeed& feed : model.feed()) {
    if (feed.name() == name) return feed;
    known += (known.empty() ? "" : ", ") + feed.name();
  }
  return InvalidConfig("model \"" + folder + "\" has no feed \"" + name + "\"; it has: " + known);
}

/// Leaves out the tables that `program` does not read. kBadData for an operator that makes anything else.
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

/// The variable that is scored by: the wanted one, or the only one.
Result<std::string> ChoosePrediction(const std::vector<std::string>& fetches, const std::string& wanted) {
  std::string names;
  for (const std::string& name : fetches) {
    if (name == wanted || (wanted.empty() && fetches.size() == 1)) return name;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (wanted.empty()) return InvalidConfig("the model returns several variables; choose one by --prediction: " + names);
  return InvalidConfig("the model does not return \"" + wanted + "\"; it returns: " + names);
}

/// How lines of a model of Paddle are read: as the caller says, as its folder says, or a slot for each fed variable.
Result<DataFeedDesc> PaddleLines(const PaddleModelFiles& files, const ProgramDesc& program,
                                 const std::vector<std::string>& feeds) {
  if (!std::filesystem::exists(files.data_feed)) return FeedLines(program, feeds);
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

}  // namespace

Result<std::unique_ptr<const Predictor>> Predictor::Load(const std::string& folder, const OpRegistry& registry,
                                                         const PredictorOptions& options) {
  std::unique_ptr<Predictor> predictor(new Predictor);
  predictor->root_ = std::make_unique<Scope>();
  const bool is_own = std::filesystem::exists(folder + "/MODEL");
  MR_TRY(is_own ? predictor->LoadOwn(folder, registry, options) : predictor->LoadPaddle(folder, registry, options));
  return std::unique_ptr<const Predictor>(std::move(predictor));
}

Status Predictor::LoadOwn(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options) {
  MR_ASSIGN(const InferenceModel model, ReadModel(folder));
  MR_ASSIGN(const ModelFeed feed, FindFeed(model, options.feed, folder));
  feeds_ = {feed.vars().begin(), feed.vars().end()};
  data_desc_ = options.data_desc != nullptr ? *options.data_desc : feed.data_desc();
  MR_ASSIGN(prediction_, ChoosePrediction({model.prediction()}, options.prediction));
  seed_ = model.seed();
  MR_ASSIGN(const ProgramDesc program, ReadProgram(folder + "/" + feed.program()));
  const std::string tables_path = folder + "/program_tables";
  MR_ASSIGN(ProgramDesc tables, ReadProgram(tables_path));
  MR_TRY(KeepTablesOf(program, tables_path, &tables));
  MR_TRY(RunStartup(tables, registry, *root_, model.seed()));
  MR_TRY(RestoreVariables(folder, {model.variable().begin(), model.variable().end()}, *root_));
  return Compile(program, registry);
}

Status Predictor::LoadPaddle(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options) {
  Result<PaddleModelFiles> found = FindPaddleModel(folder);
  if (found.status().code() == StatusCode::kNotFound) {
    return NotFound("\"" + folder +
                    "\" is no saved model: it has no file MODEL (a finished run writes one to OUTPUT_DIR/model) and no "
                    "*.pdmodel of Paddle");
  }
  MR_ASSIGN(const PaddleModelFiles files, std::move(found));
  if (options.feed != "offline") {
    return InvalidConfig("a model of Paddle has one feed list; --feed=" + options.feed +
                         " is for models that trainer saved. Name another model of the folder by its prefix: " +
                         folder + "/" + options.feed);
  }
  FeedFetch lists;
  MR_ASSIGN(const ProgramDesc program, ReadPaddleProgram(files, &lists));
  feeds_ = lists.feeds;
  MR_ASSIGN(prediction_, ChoosePrediction(lists.fetches, options.prediction));
  if (options.data_desc != nullptr) {
    data_desc_ = *options.data_desc;
  } else {
    MR_ASSIGN(data_desc_, PaddleLines(files, program, feeds_));
  }
  MR_TRY(LoadPaddleParameters(files, program, *root_));
  return Compile(program, registry);
}

Status Predictor::Compile(const ProgramDesc& program, const OpRegistry& registry) {
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(data_desc_));
  MR_TRY(CheckFed(schema, feeds_));
  schema_ = std::make_unique<const SlotSchema>(std::move(schema));
  CompileOptions options;
  options.fetches = {prediction_};
  options.forward_only = true;
  MR_ASSIGN(executable_, Executable::Compile(program, registry, options));
  return Status::Ok();
}

Result<std::unique_ptr<PredictSession>> PredictSession::Create(const Predictor& predictor, const SlotSchema& schema,
                                                               int max_rows) {
  std::unique_ptr<PredictSession> session(new PredictSession);
  FrameOptions options;
  options.max_rows = max_rows;
  options.seed = predictor.seed_;
  options.read_only = true;
  MR_ASSIGN(session->frame_, Frame::Create(*predictor.executable_, &schema, *predictor.root_, options));
  const Variable* prediction = session->frame_->Find(predictor.prediction_);
  if (prediction == nullptr) return Internal("the model's program has no variable \"" + predictor.prediction_ + "\"");
  session->prediction_ = &prediction->Get<Tensor>();
  session->prediction_name_ = predictor.prediction_;
  session->scores_.reserve(static_cast<size_t>(max_rows));
  return session;
}

Result<std::span<const float>> PredictSession::Run(const SlotBatch& batch) {
  RunContext context;
  context.batch = &batch;
  context.rows = batch.rows();
  MR_TRY(frame_->Run(context));
  const auto rows = static_cast<size_t>(batch.rows());
  const auto count = static_cast<size_t>(prediction_->numel());
  if (rows == 0 || count % rows != 0) {
    return Internal("a prediction of shape " + prediction_->dims().ToString() + " for " + std::to_string(rows) +
                    " rows");
  }
  if (prediction_->dtype() != DType::kFloat32) {
    return InvalidConfig("\"" + prediction_name_ + "\" is " + std::string(DTypeName(prediction_->dtype())) +
                         ", and predictions are float32");
  }
  const size_t width = count / rows;
  const float* values = prediction_->data<float>();
  scores_.resize(rows);
  // Of several classes the last one is the click's.
  for (size_t row = 0; row < rows; ++row) scores_[row] = values[row * width + width - 1];
  return std::span<const float>(scores_);
}

}  // namespace millrace
