#include "serving/predictor.h"

#include <google/protobuf/text_format.h>

#include <filesystem>

#include "core/sealed_text.h"
#include "inference_model.pb.h"
#include "program/program_files.h"
#include "program/variable_store.h"

namespace millrace {
namespace {

constexpr int kFormatVersion = 1;

Result<InferenceModel> ReadModel(const std::string& folder) {
  const std::string path = folder + "/MODEL";
  if (!std::filesystem::exists(path)) {
    return NotFound("\"" + folder +
                    "\" is no saved model: it has no file MODEL; a finished run writes one to "
                    "OUTPUT_DIR/model");
  }
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

bool Declares(const ProgramDesc& program, const std::string& name) {
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.name() == name) return true;
  }
  return false;
}

/// Leaves out the tables that `program` does not read.
void KeepTablesOf(const ProgramDesc& program, ProgramDesc* tables) {
  BlockDesc kept;
  for (const OpDesc& op : tables->blocks(0).ops()) {
    if (Declares(program, op.outputs(0).arguments(0))) *kept.add_ops() = op;
  }
  for (const VarDesc& var : tables->blocks(0).vars()) {
    if (Declares(program, var.name())) *kept.add_vars() = var;
  }
  kept.set_idx(0);
  kept.set_parent_idx(-1);
  *tables->mutable_blocks(0) = std::move(kept);
}

}  // namespace

Result<std::unique_ptr<const Predictor>> Predictor::Load(const std::string& folder, const OpRegistry& registry,
                                                         const std::string& feed_name) {
  MR_ASSIGN(const InferenceModel model, ReadModel(folder));
  MR_ASSIGN(const ModelFeed feed, FindFeed(model, feed_name, folder));
  std::unique_ptr<Predictor> predictor(new Predictor);
  predictor->data_desc_ = feed.data_desc();
  MR_ASSIGN(SlotSchema schema, SlotSchema::Create(feed.data_desc()));
  predictor->schema_ = std::make_unique<const SlotSchema>(std::move(schema));
  predictor->feeds_ = {feed.vars().begin(), feed.vars().end()};
  predictor->prediction_ = model.prediction();
  predictor->seed_ = model.seed();
  predictor->root_ = std::make_unique<Scope>();

  MR_ASSIGN(const ProgramDesc program, ReadProgram(folder + "/" + feed.program()));
  MR_ASSIGN(ProgramDesc tables, ReadProgram(folder + "/program_tables"));
  KeepTablesOf(program, &tables);
  MR_TRY(RunStartup(tables, registry, *predictor->root_, model.seed()));
  MR_TRY(RestoreVariables(folder, {model.variable().begin(), model.variable().end()}, *predictor->root_));
  CompileOptions options;
  options.fetches = {model.prediction()};
  options.forward_only = true;
  MR_ASSIGN(predictor->executable_, Executable::Compile(program, registry, options));
  return std::unique_ptr<const Predictor>(std::move(predictor));
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
  const size_t width = count / rows;
  const float* values = prediction_->data<float>();
  scores_.resize(rows);
  // Of several classes the last one is the click's.
  for (size_t row = 0; row < rows; ++row) scores_[row] = values[row * width + width - 1];
  return std::span<const float>(scores_);
}

}  // namespace millrace
