#include "serving/inference_model.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>

#include "core/checksummed_file.h"
#include "core/file.h"
#include "core/replace_folder.h"
#include "core/sealed_text.h"
#include "data_feed.pb.h"
#include "framework/slot_schema.h"
#include "inference_model.pb.h"
#include "program/variable_store.h"
#include "serving/prune.h"

namespace millrace {
namespace {

constexpr int kFormatVersion = 1;

Result<StoredFile> WriteProgram(const ProgramDesc& program, const std::string& folder, const std::string& name) {
  MR_ASSIGN(const auto file, ChecksummedFile::Create(folder + "/" + name));
  program.SerializeToOstream(&file->stream());
  MR_ASSIGN(const FileSum sum, file->Finish());
  StoredFile stored;
  stored.set_name(name);
  stored.set_bytes(sum.bytes);
  stored.set_crc32c(sum.crc32c);
  return stored;
}

const VarDesc* FindVar(const ProgramDesc& program, std::string_view name) {
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.name() == name) return &var;
  }
  return nullptr;
}

/// Makes the tables that `program` reads.
ProgramDesc TableStartup(const ProgramDesc& startup, const ProgramDesc& program) {
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
    *block->add_ops() = op;
  }
  return tables;
}

/// One dense float slot for each pooled variable, then the slots that the rest of the model reads as they were.
Result<DataFeedDesc> OnlineFeedDesc(const InferenceSource& source, const ProgramDesc& program,
                                    const std::vector<std::string>& vars) {
  DataFeedDesc desc;
  desc.set_batch_size(source.data_desc->batch_size());
  MR_ASSIGN(const SlotSchema schema, SlotSchema::Create(*source.data_desc));
  for (const std::string& name : vars) {
    Slot* slot = desc.mutable_multi_slot_desc()->add_slots();
    slot->set_name(name);
    slot->set_is_used(true);
    if (const SlotId id = schema.Find(name); id >= 0) {
      const SlotSpec& spec = schema.used()[static_cast<size_t>(id)];
      slot->set_type(spec.type == SlotType::kFloat ? "float" : "uint64");
      slot->set_is_dense(spec.is_dense);
      for (const int64_t size : spec.shape) slot->add_shape(static_cast<int32_t>(size));
      continue;
    }
    const auto& dims = FindVar(program, name)->type().lod_tensor().tensor().dims();
    slot->set_type("float");
    slot->set_is_dense(true);
    for (const int64_t size : dims) slot->add_shape(static_cast<int32_t>(size));
  }
  return desc;
}

Status AddFeed(const std::string& name, const ProgramDesc& program, const DataFeedDesc& data_desc,
               const std::vector<std::string>& vars, const std::string& folder, InferenceModel* model) {
  ModelFeed* feed = model->add_feed();
  feed->set_name(name);
  feed->set_program("program_" + name);
  for (const std::string& var : vars) feed->add_vars(var);
  *feed->mutable_data_desc() = data_desc;
  MR_ASSIGN(*model->add_file(), WriteProgram(program, folder, feed->program()));
  return Status::Ok();
}

/// Pooled variables first, as online callers know them, then slots.
std::vector<std::string> OnlineVars(const ProgramDesc& program, const std::vector<std::string>& pooled) {
  std::vector<std::string> fed = FedVariables(program);
  std::vector<std::string> vars;
  for (const std::string& name : pooled) {
    if (std::erase(fed, name) > 0) vars.push_back(name);
  }
  vars.insert(vars.end(), fed.begin(), fed.end());
  return vars;
}

}  // namespace

Status SaveInferenceModel(const InferenceSource& source, const std::string& folder) {
  const std::string beside = folder + ".writing";
  MR_TRY(RemoveFolder(beside));
  std::error_code error;
  std::filesystem::create_directories(beside, error);
  if (error) return IoError("cannot make the folder \"" + beside + "\": " + error.message());

  InferenceModel model;
  model.set_format_version(kFormatVersion);
  model.set_millrace_version(MILLRACE_VERSION);
  model.set_prediction(source.prediction);
  model.set_seed(source.seed);
  MR_ASSIGN(const ProgramDesc offline, PruneProgram(*source.test, {source.prediction}, {}));
  MR_TRY(AddFeed("offline", offline, *source.data_desc, FedVariables(offline), beside, &model));
  if (!source.pooled.empty()) {
    MR_ASSIGN(const ProgramDesc online, PruneProgram(*source.test, {source.prediction}, source.pooled));
    const std::vector<std::string> vars = OnlineVars(online, source.pooled);
    MR_ASSIGN(const DataFeedDesc online_desc, OnlineFeedDesc(source, online, vars));
    MR_TRY(AddFeed("online", online, online_desc, vars, beside, &model));
  }
  MR_ASSIGN(*model.add_file(), WriteProgram(TableStartup(*source.startup, offline), beside, "program_tables"));
  MR_ASSIGN(const StoredVariables stored, StoreVariables(offline, beside, *source.root));
  for (const StoredVariable& variable : stored.variables) *model.add_variable() = variable;
  for (const StoredFile& file : stored.files) *model.add_file() = file;

  std::string text;
  google::protobuf::TextFormat::PrintToString(model, &text);
  MR_TRY(WriteFileAtomically(beside + "/MODEL", SealText(std::move(text))));
  return ReplaceFolder(beside, folder);
}

}  // namespace millrace
