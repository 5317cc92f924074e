// Saves and loads of a TrainedScope.

#include <algorithm>
#include <set>
#include <utility>

#include "checkpoint/checkpoint_store.h"
#include "core/contained_file.h"
#include "core/file.h"
#include "core/on_threads.h"
#include "core/version.h"
#include "program/block_builder.h"
#include "program/text_proto.h"
#include "program/var_meta.h"
#include "runtime/persistables.h"
#include "runtime/variable_store.h"
#include "serving/export_model.h"
#include "serving/inference_model.h"
#include "session/script_job.h"
#include "session/trained_scope.h"
#include "table/server_rows.h"
#include "table/sparse_table.h"

namespace millrace {
namespace {

using TablePtr = std::unique_ptr<SparseTable>;

/// The variables of a program that belong to a parameter: itself and its optimizer's state.
ProgramDesc PartOfParameter(const ProgramDesc& program, const std::string& name) {
  std::set<std::string> wanted = {name};
  for (const OpDesc& op : program.blocks(0).ops()) {
    const std::vector<std::string> updated = InputArguments(op, "Param");
    if (updated.empty() || updated[0] != name) continue;
    for (const OpDesc::Var& input : op.inputs()) {
      if (input.parameter() == "LearningRate" || input.parameter() == "Grad") continue;
      wanted.insert(input.arguments().begin(), input.arguments().end());
    }
  }
  ProgramDesc part;
  BlockDesc* const block = part.add_blocks();
  block->set_idx(0);
  block->set_parent_idx(-1);
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (wanted.contains(var.name())) *block->add_vars() = var;
  }
  return part;
}

/// Reads a checkpoint into an empty scope.
Status ReadInto(const FoundCheckpoint& found, const ProgramDesc& desc, const TableFactory& tables, int threads,
                const std::stop_token& stop, Scope* into) {
  const CheckpointManifest& manifest = found.manifest;
  // Of the tensors alone: the scope has no tables yet.
  MR_TRY(RestoreVariables(found.folder, {manifest.variable().begin(), manifest.variable().end()}, *into, nullptr,
                          threads, {stop}));
  for (const StoredVariable& variable : manifest.variable()) {
    if (!variable.has_table()) continue;
    const VarDesc& described = *FindVar(desc, variable.name());
    MR_ASSIGN(TablePtr table, ReadTable(found.folder, variable, described, manifest.seed(), tables, threads, {stop}));
    into->Var(variable.name())->Set(std::move(table));
  }
  return Status::Ok();
}

/// A variable of a loaded model can replace a tensor of the same shape, but not a table, because the model lacks the
/// table's optimizer state.
Status CheckRoomFor(const Variable& loaded, const std::string& name, const Scope& scope) {
  const Variable* there = scope.Find(name);
  if (there == nullptr || there->empty()) return Status::Ok();
  const bool both = loaded.Is<Tensor>() && there->Is<Tensor>();
  if (both && loaded.Get<Tensor>().dims() == there->Get<Tensor>().dims()) return Status::Ok();
  return AlreadyExists("the scope has another \"" + name +
                       "\", which the model's would replace; load it into a scope of its own: with "
                       "millrace.scope_guard(millrace.Scope())");
}

}  // namespace

Status TrainedScope::Save(const CallContext& context, const ProgramDesc& program, const std::string& folder,
                          uint64_t seed, int64_t key) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  const PreparedProgram::Trained so_far = trained(key);
  const auto save = [&] {
    return SavePersistables(program, folder, *scope, {so_far.step, so_far.examples, seed}, ManifestFor::kAll, {},
                            ThreadsHere());
  };
  return context.ranks.ByLeader("save_persistables(\"" + folder + "\")", save, context.stop);
}

Result<bool> TrainedScope::Load(const CallContext& context, const ProgramDesc& program, const std::string& folder,
                                int64_t key) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  RankGroup& group = *context.ranks.group;
  prepared_.clear();
  MR_TRY(context.ranks.Together("load_persistables(\"" + folder + "\")", context.stop));
  MR_TRY(group.Agree(tables_.Own(context.ranks, program)));
  const auto loaded = LoadPersistables(program, folder, *scope, TablesOf(context), ThreadsHere(), context.stop);
  MR_TRY(group.Agree(loaded.status()));
  const std::optional<TrainedSoFar>& so_far = *loaded;
  if (so_far) SetTrained(key, {so_far->step, so_far->examples});
  MadeAnew(program);
  return so_far.has_value();
}

Status TrainedScope::LoadTable(const CallContext& context, const ProgramDesc& program, const std::string& name,
                               const std::string& folder) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  RankGroup& group = *context.ranks.group;
  const ProgramDesc part = PartOfParameter(program, name);
  MR_TRY(CheckMade(part, *scope));
  prepared_.clear();
  MR_TRY(context.ranks.Together("load_one_table(\"" + folder + "\")", context.stop));
  const Variable& variable = *scope->Find(name);
  const bool is_servers = variable.Is<TablePtr>() && !HasManifest(folder);
  const ShardRange shards = group.tables().ShardsOf(group.rank());
  MR_TRY(group.Agree(
      is_servers ? LoadServerRows(folder, variable.Get<TablePtr>().get(), shards, context.stop)
                 : LoadPersistables(part, folder, *scope, TablesOf(context), ThreadsHere(), context.stop).status()));
  ++version_;
  return Status::Ok();
}

Status TrainedScope::LoadWeights(const CallContext& context, const ProgramDesc& program, const std::string& folder) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  prepared_.clear();
  MR_TRY(context.ranks.Together("the weights of \"" + folder + "\"", context.stop));
  MR_TRY(context.ranks.group->Agree(LoadModelWeights(folder, program, *scope, ThreadsHere(), context.stop)));
  MadeAnew(program);
  return Status::Ok();
}

Status TrainedScope::SaveCheckpoint(const CallContext& context, const ProgramDesc& program, const std::string& folder,
                                    int keep, uint64_t seed, int64_t key, const std::string& trainer_args) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  CheckpointContent content;
  const PreparedProgram::Trained so_far = trained(key);
  content.manifest.set_millrace_version(MillraceVersion());
  content.manifest.set_step(so_far.step);
  content.manifest.set_examples(so_far.examples);
  content.manifest.set_seed(seed);
  content.manifest.set_trainer_args(trainer_args);
  uint64_t& run_id = run_ids_[key];
  if (run_id == 0) run_id = NewRunId();
  content.manifest.set_run_id(run_id);
  MR_TRY(CheckMade(program, *scope));
  const auto save = [&]() -> Status {
    MR_ASSIGN(CheckpointStore store, CheckpointStore::Create(folder, keep, ThreadsHere()));
    MR_TRY(store.BeginRun(run_id));
    return store.Write(content, program, *scope, {context.stop, {}});
  };
  return context.ranks.ByLeader("save_checkpoint(\"" + folder + "\")", save, context.stop);
}

Result<std::optional<RestoredCheckpoint>> TrainedScope::LoadCheckpoint(const CallContext& context,
                                                                       const ProgramDesc& program,
                                                                       const std::string& folder, int64_t key) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  const std::stop_token& stop = context.stop;
  const CheckpointFits fits = [&program](const CheckpointManifest& manifest) {
    return CompareVariables(program, {manifest.variable().begin(), manifest.variable().end()}, {});
  };
  const bool is_one = MayBeThere(folder + "/MANIFEST");
  if (!is_one && !MayBeThere(folder)) return std::optional<RestoredCheckpoint>();
  RankGroup& group = *context.ranks.group;
  MR_TRY(context.ranks.Together("load_checkpoint(\"" + folder + "\")", stop));
  MR_TRY(group.Agree(tables_.Own(context.ranks, program)));
  const int threads = ThreadsHere();
  RestoredCheckpoint restored;
  std::optional<FoundCheckpoint> found;
  std::string chosen = is_one ? folder : "";
  Status read;
  if (!is_one && group.leads()) {
    Result<std::optional<FoundCheckpoint>> newest =
        CheckpointStore::Open(folder, threads).FindNewest(fits, &restored.skipped, {stop});
    read = newest.status();
    if (newest.ok()) found = *std::move(newest);
    if (found) chosen = found->folder;
  }
  // Other ranks can see another newest checkpoint.
  MR_TRY(group.FromLeader(&chosen));
  if (read.ok() && !found && !chosen.empty()) {
    const CheckedFiles checked = group.leads() ? CheckedFiles::kAll : CheckedFiles::kButThoseOfTables;
    Result<FoundCheckpoint> one = ReadCheckpoint(chosen, fits, checked, {stop});
    read = one.status();
    if (one.ok()) found = *std::move(one);
  }
  Scope trial;
  if (read.ok() && found) read = ReadInto(*found, program, TablesOf(context), threads, stop, &trial);
  MR_TRY(group.Agree(read));
  if (!found) return std::optional<RestoredCheckpoint>();
  const CheckpointManifest& manifest = found->manifest;
  prepared_.clear();
  TakeVariables(trial, *scope);
  SetTrained(key, {manifest.step(), manifest.examples()});
  run_ids_[key] = manifest.run_id();
  MadeAnew(program);
  restored.folder = found->folder;
  restored.step = manifest.step();
  restored.examples = manifest.examples();
  restored.trainer_args = manifest.trainer_args();
  return std::optional(std::move(restored));
}

Result<LoadedModel> TrainedScope::LoadModel(const CallContext& context, const std::string& folder) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  MR_ASSIGN(LoadedModel model, Predictor::LoadProgram(folder, context.environment.ops, context.stop));
  for (const std::string& name : model.root->Names()) MR_TRY(CheckRoomFor(*model.root->Find(name), name, *scope));
  prepared_.clear();
  TakeVariables(*model.root, *scope);
  MadeAnew(model.program);
  return model;
}

Status TrainedScope::SaveModel(const CallContext& context, const ScopeModel& model, const std::string& folder) {
  MR_ASSIGN(const LoadedConfig config,
            ReadScriptJob(context.environment, "save_inference_model", model.data, false, false));
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  InferenceSource source;
  source.test = &model.test;
  source.startup = &model.startup;
  source.root = &*scope;
  source.data_desc = &config.desc->data_desc();
  source.prediction = model.prediction;
  source.targets = model.targets;
  source.pooled = model.pooled;
  source.seed = config.desc->seed();
  source.ops = &context.environment.ops;
  source.feeds = &context.environment.feeds;
  source.threads = ThreadsHere();
  source.work.stop = context.stop;
  const auto save = [&] { return SaveInferenceModel(source, folder); };
  return context.ranks.ByLeader("save_inference_model(\"" + folder + "\")", save, context.stop);
}

Status TrainedScope::ExportModel(const CallContext& context, const ProgramDesc& test, const std::string& data,
                                 const std::vector<std::string>& predictions, const std::string& description,
                                 const std::string& folder) {
  MR_ASSIGN(const LoadedConfig config, ReadScriptJob(context.environment, "export_model", data, false, false));
  ExportDesc desc;
  MR_TRY(ParseTextProto(description, "export_model", &desc));
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  ExportSource source;
  source.program = &test;
  source.registry = &context.environment.ops;
  source.data_desc = &config.desc->data_desc();
  source.predictions = predictions;
  MR_ASSIGN(const ModelExport plan, ModelExport::Plan(source, desc, folder));
  const auto write = [&] { return plan.Write(*scope, {context.stop, {}}); };
  return context.ranks.ByLeader("export_model(\"" + folder + "\")", write, context.stop);
}

}  // namespace millrace
