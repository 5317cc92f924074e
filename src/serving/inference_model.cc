#include "serving/inference_model.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/checksummed_file.h"
#include "core/contained_file.h"
#include "core/file.h"
#include "core/sealed_text.h"
#include "core/version.h"
#include "data_feed.pb.h"
#include "datafeed/data_feed.h"
#include "inference_model.pb.h"
#include "model.pb.h"
#include "program/op_registry.h"
#include "program/var_meta.h"
#include "runtime/variable_store.h"
#include "serving/feed_lists.h"
#include "serving/prune.h"

namespace millrace {
namespace {

Result<StoredFile> WriteProgram(const ProgramDesc& program, const std::string& folder, const std::string& name) {
  MR_ASSIGN(const auto file, ChecksummedFile::Create(folder + "/" + name));
  program.SerializeToOstream(&file->stream());
  return FinishFile(*file, name);
}

/// The operator that creates the same table in the predicting process, with rows without optimizer state.
Result<OpDesc> WithoutState(OpDesc op) {
  const OpDesc::Attr* text = FindAttr(op, kTableAttr);
  TableDesc desc;
  if (text == nullptr || !google::protobuf::TextFormat::ParseFromString(text->s(), &desc)) {
    return Internal("create_sparse_table without a TableDesc");
  }
  desc.mutable_optimizer()->mutable_sgd();
  if (desc.has_accessor()) {
    // Like with the accessor, a key without a row shows zeros.
    desc.mutable_init()->set_constant(0);
    desc.clear_accessor();
  }
  desc.clear_class_name();
  std::string without;
  google::protobuf::TextFormat::PrintToString(desc, &without);
  SetAttr(op, kTableAttr, without);
  return op;
}

/// The program that creates the tables read by `program`.
Result<ProgramDesc> TableStartup(const ProgramDesc& startup, const ProgramDesc& program) {
  ProgramDesc tables;
  BlockDesc* block = tables.add_blocks();
  block->set_idx(0);
  block->set_parent_idx(-1);
  for (const OpDesc& op : startup.blocks(0).ops()) {
    if (op.type() != "create_sparse_table") continue;
    const std::string& name = op.outputs(0).arguments(0);
    const VarDesc* var = FindVar(startup, name);
    if (FindVar(program, name) == nullptr || var == nullptr) continue;
    *block->add_vars() = *var;
    MR_ASSIGN(*block->add_ops(), WithoutState(op));
  }
  return tables;
}

Status AddFeed(const std::string& name, const FeedList& list, const std::string& folder, InferenceModel* model) {
  ModelFeed* feed = model->add_feed();
  feed->set_name(name);
  feed->set_program("program_" + name);
  for (const std::string& var : list.vars) feed->add_vars(var);
  *feed->mutable_data_desc() = list.data_desc;
  MR_ASSIGN(*model->add_file(), WriteProgram(list.program, folder, feed->program()));
  return Status::Ok();
}

/// The entry of a plugin by file name, because paths are specific to a machine.
ModelPlugin& PluginOf(const std::string& path, const std::string& version, InferenceModel* model) {
  const std::string name = std::filesystem::path(path).stem().string();
  auto* const all = model->mutable_plugin();
  const auto known = std::find_if(all->begin(), all->end(), [&](const ModelPlugin& p) { return p.name() == name; });
  if (known != all->end()) return *known;
  ModelPlugin& added = *all->Add();
  added.set_name(name);
  if (!version.empty()) added.set_version(version);
  return added;
}

/// Records a program's requirements of plugins.
void AddPluginsOf(const ProgramDesc& program, const OpRegistry& ops, InferenceModel* model) {
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      const OpInfo* const info = ops.Find(op.type());
      if (info == nullptr || info->plugin.empty()) continue;
      auto* const noted = PluginOf(info->plugin, info->plugin_version, model).mutable_operators();
      if (std::find(noted->begin(), noted->end(), op.type()) == noted->end()) *noted->Add() = op.type();
    }
  }
}

/// Fills `folder`.
Status WriteModel(const InferenceSource& source, const std::string& folder) {
  MR_TRY(source.work.Done(0, "saving a model"));
  InferenceModel model;
  model.set_format_version(kModelFormatVersion);
  model.set_millrace_version(MillraceVersion());
  model.set_prediction(source.prediction);
  model.set_seed(source.seed);
  model.set_label(source.label);
  std::vector<std::string> predictions = {source.prediction};
  for (const ModelTask& task : source.tasks) {
    *model.add_task() = task;
    const bool is_there = std::find(predictions.begin(), predictions.end(), task.prediction()) != predictions.end();
    if (!is_there) predictions.push_back(task.prediction());
  }
  for (const ModelCalibration& calibration : source.calibrations) *model.add_calibration() = calibration;
  for (const auto& [slot, share] : source.slot_shares) {
    ModelSlotShare& saved = *model.add_slot_share();
    saved.set_slot(slot);
    saved.set_rows(share.rows);
    saved.set_empty(share.empty);
    saved.set_ids(share.ids);
    saved.set_unknown(share.unknown);
  }
  const ProgramDesc forward = WithoutInputsForGradients(*source.test, *source.ops);
  MR_ASSIGN(FeedList whole, OfflineFeed(forward, predictions, *source.data_desc));
  MR_TRY(source.work.Done(0, "saving a model"));
  MR_TRY(AddFeed("offline", whole, folder, &model));
  if (!source.targets.empty()) {
    MR_ASSIGN(whole, OfflineFeed(forward, source.targets, *source.data_desc));
    MR_TRY(AddFeed("targets", whole, folder, &model));
    for (const std::string& target : source.targets) model.add_target(target);
  }
  AddPluginsOf(whole.program, *source.ops, &model);
  if (const auto* origin = source.feeds->PluginOf(source.data_desc->name()); origin != nullptr) {
    PluginOf(origin->path, origin->version, &model).set_data_feed(source.data_desc->name());
  }
  if (!source.pooled.empty()) {
    MR_ASSIGN(const FeedList online, OnlineFeed(forward, predictions, source.pooled, *source.data_desc));
    MR_TRY(AddFeed("online", online, folder, &model));
  }
  MR_ASSIGN(const ProgramDesc tables, TableStartup(*source.startup, whole.program));
  MR_ASSIGN(*model.add_file(), WriteProgram(tables, folder, "program_tables"));
  MR_ASSIGN(const StoredVariables stored,
            StoreVariables(whole.program, folder, *source.root, source.content, source.threads, source.work));
  for (const StoredVariable& variable : stored.variables) *model.add_variable() = variable;
  for (const StoredFile& file : stored.files) *model.add_file() = file;

  std::string text;
  google::protobuf::TextFormat::PrintToString(model, &text);
  return WriteFileAtomically(folder + "/MODEL", SealText(std::move(text)));
}

/// Reads only MODEL, without checking the files it lists.
Result<InferenceModel> ReadModelFile(const std::string& folder) {
  MR_ASSIGN(const std::string path, FileInFolder(folder, "MODEL"));
  MR_ASSIGN(const std::string text, ReadSealedText(path));
  InferenceModel model;
  if (!google::protobuf::TextFormat::ParseFromString(text, &model)) {
    return BadData("\"" + path + "\" is not a model that this version reads");
  }
  if (model.format_version() != kModelFormatVersion) {
    return BadData("\"" + path + "\" has format version " + std::to_string(model.format_version()) +
                   "; this program reads version " + std::to_string(kModelFormatVersion));
  }
  return model;
}

}  // namespace

Status SaveInferenceModel(const InferenceSource& source, const std::string& folder) {
  return WriteFolder(folder, kModelFolder, [&](const std::string& beside) { return WriteModel(source, beside); });
}

std::set<std::string> FilesOfModel(const std::string& folder) {
  const Result<InferenceModel> model = ReadModelFile(folder);
  if (!model.ok()) return {};
  std::set<std::string> files = {"MODEL", "tables"};  // a folder, empty without tables
  for (const StoredFile& file : model->file()) files.insert(file.name());
  return files;
}

Status CheckModelFiles(const std::map<std::string, std::string>& files) {
  for (const auto& [name, content] : files) {
    if (!StaysInFolder(name)) {
      return BadData("a model names a file \"" + name + "\", which lies outside its folder; it is not written");
    }
  }
  return Status::Ok();
}

Status WriteModelFiles(const std::map<std::string, std::string>& files, const std::string& folder) {
  MR_TRY(CheckModelFiles(files));
  return WriteFolder(folder, kModelFolder, [&files](const std::string& beside) {
    for (const auto& [name, content] : files) {
      const std::string path = beside + "/" + name;
      MR_TRY(MakeFolder(std::filesystem::path(path).parent_path().string()));
      MR_TRY(WriteFileAtomically(path, content));
    }
    return Status::Ok();
  });
}

std::string ModelInOutput(const std::string& folder) {
  std::string inner = folder + (folder.ends_with('/') ? "model" : "/model");
  if (!MayBeThere(inner + "/MODEL")) inner.clear();
  return inner;
}

Status NoModelIn(const std::string& folder, const std::string& nor) {
  if (const std::string inner = ModelInOutput(folder); !inner.empty()) {
    return NotFound("\"" + folder + "\" is the output folder of a run, and its model lies in \"" + inner +
                    "\": name that folder");
  }
  return NotFound("\"" + folder +
                  "\" is no saved model: it has no file MODEL (a finished run writes one to OUTPUT_DIR/model)" + nor);
}

Result<InferenceModel> ReadInferenceModel(const std::string& folder, int threads, const std::stop_token& stop) {
  Result<InferenceModel> read = ReadModelFile(folder);
  if (read.status().code() == StatusCode::kNotFound) return NoModelIn(folder);
  MR_ASSIGN(InferenceModel model, std::move(read));
  MR_TRY(CheckStoredFiles(folder, {model.file().begin(), model.file().end()},
                          {model.variable().begin(), model.variable().end()}, threads, {stop}));
  return model;
}

Status LoadModelWeights(const std::string& folder, const ProgramDesc& program, Scope& root, int threads,
                        const std::stop_token& stop) {
  MR_ASSIGN(const InferenceModel model, ReadInferenceModel(folder, threads, stop));
  const std::vector<StoredVariable> stored(model.variable().begin(), model.variable().end());
  // Models contain no optimizer state; tables check their rows themselves.
  std::set<std::string> apart;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.persistable()) apart.insert(var.name());
  }
  for (const StoredVariable& variable : stored) {
    if (!variable.has_table()) apart.erase(variable.name());
  }
  MR_TRY(CompareVariables(program, stored, apart).Context("the model \"" + folder + "\" does not fit the program"));
  return RestoreVariables(folder, stored, root, nullptr, threads, {stop});
}

}  // namespace millrace
