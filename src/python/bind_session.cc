#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_store.h"
#include "config/print_config.h"
#include "config/trainer_desc_reader.h"
#include "core/caught.h"
#include "core/contained_file.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/on_threads.h"
#include "core/version.h"
#include "core/wire.h"
#include "core/words.h"
#include "dataset/dataset_factory.h"
#include "dataset/row_exchange.h"
#include "dataset/rows_of_rank.h"
#include "job/job_session.h"
#include "program/block_builder.h"
#include "program/counters.h"
#include "program/program_files.h"
#include "program/text_proto.h"
#include "program/var_meta.h"
#include "python/bindings.h"
#include "python/interruptible.h"
#include "python/output.h"
#include "python/prepared_program.h"
#include "python/process_ranks.h"
#include "python/program_counters.h"
#include "python/report_dict.h"
#include "python/table_rows.h"
#include "python/tensor_array.h"
#include "ranks/dense_of_leader.h"
#include "reader/array_queue.h"
#include "reader/reader_holder.h"
#include "report/batch_observers.h"
#include "runtime/finite_variables.h"
#include "runtime/frame.h"
#include "runtime/persistables.h"
#include "runtime/variable_store.h"
#include "serving/export_model.h"
#include "serving/inference_model.h"
#include "serving/predictor.h"
#include "table/counted_table.h"
#include "table/server_rows.h"
#include "table/sparse_table.h"
#include "trainer/builtin_trainers.h"
#include "trainer/default_environment.h"
#include "trainer/same_job.h"

namespace py = pybind11;

namespace millrace {
namespace {

ProgramDesc ProgramOf(const std::string& bytes) { return ValueOrThrow(ParseProgram(bytes, "program")); }

/// A TrainerDesc that Python wrote, checked as one from a file is.
Result<LoadedConfig> ReadOwnDesc(const std::string& origin, const std::string& text, bool needs_model, bool of_ranks) {
  ConfigRequest request;
  request.known = NamesOf(SharedEnvironment());
  request.needs_model = needs_model;
  request.has_output_folder = false;
  request.of_ranks = of_ranks;
  return LoadTrainerDescText(origin, text, request);
}
LoadedConfig LoadOwnDesc(const std::string& origin, const std::string& text, bool needs_model) {
  return ValueOrThrow(ReadOwnDesc(origin, text, needs_model, false));
}

/// What a dataset of the package names where this rank has no files, and others may have some (DatasetBase._files).
constexpr std::string_view kNoFiles = "/dev/null";

Status NoFilesOnAnyRank() { return InvalidConfig("the dataset has no files on any rank: call set_filelist"); }

/// The files that each rank's description names, by rank, where all could be read: what `call` begins with on ranks.
Result<std::vector<std::vector<std::string>>> FileLists(const ProcessRanks& ranks, const std::string& call,
                                                        const Result<LoadedConfig>& read, const std::stop_token& stop) {
  std::string mine;
  WireWriter out(&mine);
  for (const std::string& file : read.ok() ? read->files : std::vector<std::string>()) {
    if (file != kNoFiles) out.PutText(file);
  }
  std::vector<std::string> all;
  MR_TRY(ranks.script->Together(call, mine, &all, stop));
  MR_TRY(ranks.group->Agree(read.status()));
  std::vector<std::vector<std::string>> lists(all.size());
  for (size_t r = 0; r < all.size(); ++r) {
    for (WireReader in(all[r]); !in.rest().empty() && in.ok();) lists[r].emplace_back(in.GetText());
  }
  return lists;
}

/// The classes of a scope's tables. Those of ranks have the rows of one owner each.
TableFactory TablesOf(const ProcessRanks& ranks) {
  const TableFactory& tables = SharedEnvironment().tables;
  return ranks.are_several() ? RankTableFactory(tables, ranks.group->tables()) : tables;
}

/// Takes what an object owns for the time of a call, so that a second call cannot touch it meanwhile.
template <class T>
class ExclusiveAccess {
 public:
  ExclusiveAccess(std::unique_ptr<T>& owner, const char* what) : owner_(&owner) {
    if (owner == nullptr) {
      throw StatusError(AlreadyExists(std::string("the ") + what + " is in use by another call that is not over"));
    }
    value = std::move(owner);
  }
  ~ExclusiveAccess() { *owner_ = std::move(value); }
  ExclusiveAccess(const ExclusiveAccess&) = delete;
  ExclusiveAccess& operator=(const ExclusiveAccess&) = delete;

  std::unique_ptr<T> value;

 private:
  std::unique_ptr<T>* owner_;
};

/// Variables that outlive runs, and how far they were trained.
class PyScope {
 public:
  /// `key` tells apart the programs that are trained on the scope; copies of one have the same. Ranks run it together.
  void RunStartupProgram(const std::string& program, uint64_t seed, int64_t key) {
    const ProgramDesc desc = ProgramOf(program);
    const Environment& environment = SharedEnvironment();
    const ProcessRanks& ranks = RanksOfProcess();
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    prepared_.clear();
    ranks.Together("run(startup_program)");
    AgreeOrThrow(ranks, tables_.Own(ranks, desc));
    const TableFactory tables = TablesOf(ranks);
    RunInterruptibly([&](const std::stop_token& stop) {
      ThrowUnlessOk(ranks.group->Agree(
          RunStartup(desc, environment.ops, *scope.value, seed, &environment.readers, &tables, stop)));
      ThrowUnlessOk(TakeDenseOfLeader(desc, *scope.value, *ranks.group));
    });
    trained_[key] = {};
    run_ids_.erase(key);
    MadeAnew(desc);
  }

  /// Counts with what programs that measure themselves have seen, as in Paddle, where these count by the same names.
  py::object Get(const std::string& name) {
    RanksOfProcess();  // rows may lie on others
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    const Variable* variable = scope.value->Find(name);
    if (variable != nullptr && variable->Is<TablePtr>()) return ToRows(*variable->Get<TablePtr>());
    if (variable == nullptr || !variable->Is<Tensor>()) return py::none();
    py::array array = ToArray(variable->Get<Tensor>());
    if (const auto seen = seen_.find(name); seen != seen_.end() && array.dtype().equal(py::dtype::of<int64_t>())) {
      auto* const counts = static_cast<int64_t*>(array.mutable_data());
      const size_t size = std::min(static_cast<size_t>(array.size()), seen->second.size());
      for (size_t i = 0; i < size; ++i) counts[i] += seen->second[i];
    }
    return array;
  }
  /// Of what Get gives for a count, what programs that measure themselves have seen; None where they have seen nothing.
  py::object Seen(const std::string& name) const {
    const auto seen = seen_.find(name);
    if (seen == seen_.end()) return py::none();
    return py::array_t<int64_t>(static_cast<py::ssize_t>(seen->second.size()), seen->second.data());
  }
  void SetSeen(const std::string& name, const py::array_t<int64_t, py::array::c_style>& seen) {
    seen_[name].assign(seen.data(), seen.data() + seen.size());
  }
  /// The variables that a startup program or a load has made anew since the last call.
  std::vector<std::string> TakeMade() {
    const std::set<std::string> made = std::exchange(made_, {});
    return {made.begin(), made.end()};
  }
  void Set(const std::string& name, const py::array& array) {
    const py::array values = py::array::ensure(array, py::array::c_style);
    const DType type = DTypeOfArray(values, "variable \"" + name + "\"");
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    Variable* variable = scope.value->Var(name);
    if (!variable->empty() && !variable->Is<Tensor>()) {
      throw StatusError(InvalidConfig("variable \"" + name + "\" holds no tensor"));
    }
    const std::vector<int64_t> shape(values.shape(), values.shape() + values.ndim());
    auto* tensor = variable->GetMutable<Tensor>();
    const bool was_made = !tensor->empty();
    if (was_made && (tensor->dtype() != type || !(tensor->dims() == Dims(std::span<const int64_t>(shape))))) {
      throw StatusError(InvalidConfig("variable \"" + name + "\" is " + std::string(DTypeName(tensor->dtype())) + " " +
                                      tensor->dims().ToString() + "; the array is " + std::string(DTypeName(type)) +
                                      " " + Dims(std::span<const int64_t>(shape)).ToString()));
    }
    void* to = tensor->ResizeRaw(type, Dims(std::span<const int64_t>(shape)));
    ++version_;
    seen_.erase(name);
    if (values.nbytes() > 0) std::memcpy(to, values.data(), static_cast<size_t>(values.nbytes()));
  }
  /// The queue holder of that name, made when it is not there. It lives as long as the scope.
  PyArrayFeedQueueHolder* QueueHolder(const std::string& name) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    Variable* variable = scope.value->Var(name);
    if (!variable->empty() && !variable->Is<PyArrayFeedQueueHolder>()) {
      throw StatusError(AlreadyExists("variable \"" + name + "\" holds something else than a queue"));
    }
    return variable->GetMutable<PyArrayFeedQueueHolder>();
  }
  /// Starts the reader of that name over.
  void ResetReader(const std::string& name) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    Variable* variable = scope.value->Find(name);
    if (variable == nullptr || !variable->Is<ReaderHolder>()) {
      throw StatusError(NotFound("the scope has no reader \"" + name + "\": run the startup program first"));
    }
    Status restarted;
    WithoutGil([&] { restarted = variable->GetMutable<ReaderHolder>()->ReInit(); });
    ThrowUnlessOk(std::move(restarted).Context("reader \"" + name + "\""));
  }
  /// Items that the scope's readers have given since they were made.
  int64_t ItemsRead() {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    int64_t items = 0;
    for (const std::string& name : scope.value->Names()) {
      const Variable* variable = scope.value->Find(name);
      if (variable->Is<ReaderHolder>()) items += variable->Get<ReaderHolder>().items();
    }
    return items;
  }
  std::vector<std::string> NamesOfAll() {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    return scope.value->Names();
  }
  /// (rows left, rows deleted) by the name of each table with an accessor. Ranks call it together.
  std::map<std::string, std::pair<int64_t, int64_t>> Shrink() {
    const ProcessRanks& ranks = RanksOfProcess();
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    ranks.Together("scope.shrink");
    std::map<std::string, std::pair<int64_t, int64_t>> shrunk;
    Status done;
    std::string bytes;
    // The rank that leads asks the others for their rows.
    if (ranks.group->leads()) {
      WithoutGil([&] { done = ShrinkTables(*scope.value, &shrunk); });
    }
    AgreeOrThrow(ranks, done);
    WireWriter out(&bytes);
    for (const auto& [name, rows] : shrunk) {
      out.PutText(name);
      out.Put(rows.first);
      out.Put(rows.second);
    }
    WithoutGil([&] { ThrowUnlessOk(ranks.group->FromLeader(&bytes)); });
    for (WireReader in(bytes); !in.rest().empty() && in.ok();) {
      const std::string name(in.GetText());
      const auto rows = in.Get<int64_t>();
      shrunk[name] = {rows, in.Get<int64_t>()};
    }
    return shrunk;
  }
  void Save(const std::string& program, const std::string& folder, uint64_t seed, int64_t key) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    const PreparedProgram::Trained trained = trained_[key];
    const ProgramDesc desc = ProgramOf(program);
    RunByLeader(RanksOfProcess(), "save_persistables(\"" + folder + "\")", [&](const std::stop_token& /*stop*/) {
      return SavePersistables(desc, folder, *scope.value, {trained.step, trained.examples, seed}, ManifestFor::kAll, {},
                              ThreadsHere());
    });
  }
  /// Whether the folder says how far its parameters were trained. Ranks load together.
  bool Load(const std::string& program, const std::string& folder, int64_t key) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    const ProgramDesc desc = ProgramOf(program);
    const ProcessRanks& ranks = RanksOfProcess();
    prepared_.clear();
    ranks.Together("load_persistables(\"" + folder + "\")");
    AgreeOrThrow(ranks, tables_.Own(ranks, desc));
    std::optional<TrainedSoFar> trained;
    const TableFactory tables = TablesOf(ranks);
    RunInterruptibly([&](const std::stop_token& stop) {
      auto loaded = LoadPersistables(desc, folder, *scope.value, tables, ThreadsHere(), stop);
      ThrowUnlessOk(ranks.group->Agree(loaded.status()));
      trained = *std::move(loaded);
    });
    if (trained) trained_[key] = {trained->step, trained->examples};
    MadeAnew(desc);
    return trained.has_value();
  }
  /// Reads one table from a folder that Save wrote: rows that grow, or a matrix and what its updates keep. Rows that
  /// grow also from the folder of one table of Paddle's servers, when there are none yet. Ranks load together.
  void LoadTable(const std::string& program, const std::string& name, const std::string& folder) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    const ProgramDesc part = PartOfParameter(ProgramOf(program), name);
    ThrowUnlessOk(CheckMade(part, *scope.value));
    prepared_.clear();
    const ProcessRanks& ranks = RanksOfProcess();
    ranks.Together("load_one_table(\"" + folder + "\")");
    const Variable& variable = *scope.value->Find(name);
    const bool is_servers = variable.Is<TablePtr>() && !HasManifest(folder);
    const TableFactory tables = TablesOf(ranks);
    RunInterruptibly([&](const std::stop_token& stop) {
      const ShardRange shards = ranks.group->tables().ShardsOf(ranks.group->rank());
      const Status loaded = is_servers
                                ? LoadServerRows(folder, variable.Get<TablePtr>().get(), shards, stop)
                                : LoadPersistables(part, folder, *scope.value, tables, ThreadsHere(), stop).status();
      ThrowUnlessOk(ranks.group->Agree(loaded));
    });
    ++version_;
  }
  /// Reads the weights of a model of SaveModel, behind the startup program. Ranks load together.
  void LoadWeights(const std::string& program, const std::string& folder) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    const ProgramDesc desc = ProgramOf(program);
    const ProcessRanks& ranks = RanksOfProcess();
    prepared_.clear();
    ranks.Together("the weights of \"" + folder + "\"");
    RunInterruptibly([&](const std::stop_token& stop) {
      ThrowUnlessOk(ranks.group->Agree(LoadModelWeights(folder, desc, *scope.value, ThreadsHere(), stop)));
    });
    MadeAnew(desc);
  }
  /// (rows, bytes) of a table that grows.
  std::pair<int64_t, int64_t> TableSize(const std::string& name) {
    RanksOfProcess();  // rows may lie on others
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    const Variable* const variable = scope.value->Find(name);
    if (variable == nullptr || !variable->Is<TablePtr>()) {
      throw StatusError(NotFound("the scope has no table \"" + name + "\" that grows: run the startup program first"));
    }
    const TableStats stats = variable->Get<TablePtr>()->stats();
    return {stats.rows, stats.bytes};
  }
  void SaveCheckpoint(const std::string& program, const std::string& folder, int keep, uint64_t seed, int64_t key,
                      const std::string& trainer_args) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    CheckpointContent content;
    content.manifest.set_millrace_version(MillraceVersion());
    content.manifest.set_step(trained_[key].step);
    content.manifest.set_examples(trained_[key].examples);
    content.manifest.set_seed(seed);
    content.manifest.set_trainer_args(trainer_args);
    uint64_t& run_id = run_ids_[key];
    if (run_id == 0) run_id = NewRunId();
    content.manifest.set_run_id(run_id);
    const ProgramDesc desc = ProgramOf(program);
    ThrowUnlessOk(CheckMade(desc, *scope.value));
    RunByLeader(RanksOfProcess(), "save_checkpoint(\"" + folder + "\")", [&](const std::stop_token& stop) -> Status {
      MR_ASSIGN(CheckpointStore store, CheckpointStore::Create(folder, keep, ThreadsHere()));
      MR_TRY(store.BeginRun(run_id));
      return store.Write(content, desc, *scope.value, {stop, {}});
    });
  }
  /// The newest whole checkpoint of a folder, or the one that is that folder, and what was passed over; None without
  /// one.
  py::object LoadCheckpoint(const std::string& program, const std::string& folder, int64_t key) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    const ProgramDesc desc = ProgramOf(program);
    const CheckpointFits fits = [&desc](const CheckpointManifest& manifest) {
      return CompareVariables(desc, {manifest.variable().begin(), manifest.variable().end()}, {});
    };
    std::vector<std::string> refused;
    std::optional<FoundCheckpoint> found;
    const bool is_one = MayBeThere(folder + "/MANIFEST");
    if (!is_one && !MayBeThere(folder)) return py::none();
    const ProcessRanks& ranks = RanksOfProcess();
    ranks.Together("load_checkpoint(\"" + folder + "\")");
    AgreeOrThrow(ranks, tables_.Own(ranks, desc));
    const TableFactory tables = TablesOf(ranks);
    Scope trial;
    RunInterruptibly([&](const std::stop_token& stop) {
      const int threads = ThreadsHere();
      std::string chosen = is_one ? folder : "";
      Status read;
      if (!is_one && ranks.group->leads()) {
        Result<std::optional<FoundCheckpoint>> newest =
            CheckpointStore::Open(folder, threads).FindNewest(fits, &refused, {stop});
        read = newest.status();
        if (newest.ok()) found = *std::move(newest);
        if (found) chosen = found->folder;
      }
      // Others may see another newest one.
      ThrowUnlessOk(ranks.group->FromLeader(&chosen));
      if (read.ok() && !found && !chosen.empty()) {
        const bool checks_all = ranks.group->leads();
        Result<FoundCheckpoint> one =
            ReadCheckpoint(chosen, fits, checks_all ? CheckedFiles::kAll : CheckedFiles::kButThoseOfTables, {stop});
        read = one.status();
        if (one.ok()) found = *std::move(one);
      }
      if (read.ok() && found) read = ReadInto(*found, desc, tables, threads, stop, &trial);
      ThrowUnlessOk(ranks.group->Agree(read));
    });
    if (!found) return py::none();
    const CheckpointManifest& manifest = found->manifest;
    prepared_.clear();
    TakeVariables(trial, *scope.value);
    trained_[key] = {manifest.step(), manifest.examples()};
    run_ids_[key] = manifest.run_id();
    MadeAnew(desc);
    py::dict dict;
    dict["folder"] = found->folder;
    dict["step"] = manifest.step();
    dict["examples"] = manifest.examples();
    dict["trainer_args"] = manifest.trainer_args();
    dict["refused"] = refused;
    return dict;
  }
  /// A model's program and lists, whose variables come to the scope.
  py::dict LoadModel(const std::string& folder) {
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    const OpRegistry& ops = SharedEnvironment().ops;
    LoadedModel model = RunInterruptibly<LoadedModel>(
        [&](std::stop_token stop) { return Predictor::LoadProgram(folder, ops, std::move(stop)); });
    for (const std::string& name : model.root->Names()) CheckRoomFor(*model.root->Find(name), name, *scope.value);
    prepared_.clear();
    TakeVariables(*model.root, *scope.value);
    MadeAnew(model.program);
    py::dict dict;
    dict["program"] = py::bytes(model.program.SerializeAsString());
    dict["feeds"] = model.feeds;
    dict["fetches"] = model.fetches;
    dict["seed"] = model.seed;
    dict["looked_up"] = LookedUp(model.program);
    dict["warnings"] = model.warnings;
    return dict;
  }
  void SaveModel(const std::string& test, const std::string& startup, const std::string& data, std::string prediction,
                 const std::vector<std::string>& targets, const std::vector<std::string>& pooled,
                 const std::string& folder) {
    const LoadedConfig config = LoadOwnDesc("save_inference_model", data, false);
    const ProgramDesc test_program = ProgramOf(test);
    const ProgramDesc startup_program = ProgramOf(startup);
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    InferenceSource source;
    source.test = &test_program;
    source.startup = &startup_program;
    source.root = scope.value.get();
    source.data_desc = &config.desc->data_desc();
    source.prediction = std::move(prediction);
    source.targets = targets;
    source.pooled = pooled;
    source.seed = config.desc->seed();
    source.ops = &SharedEnvironment().ops;
    source.feeds = &SharedEnvironment().feeds;
    source.threads = ThreadsHere();
    RunByLeader(RanksOfProcess(), "save_inference_model(\"" + folder + "\")", [&](const std::stop_token& stop) {
      source.work.stop = stop;
      return SaveInferenceModel(source, folder);
    });
  }

  void ExportModel(const std::string& test, const std::string& data, const std::vector<std::string>& predictions,
                   const std::string& description, const std::string& folder) {
    const LoadedConfig config = LoadOwnDesc("export_model", data, false);
    const ProgramDesc test_program = ProgramOf(test);
    ExportDesc desc;
    ThrowUnlessOk(ParseTextProto(description, "export_model", &desc));
    const ExclusiveAccess<Scope> scope(scope_, "scope");
    ExportSource source;
    source.program = &test_program;
    source.registry = &SharedEnvironment().ops;
    source.data_desc = &config.desc->data_desc();
    source.predictions = predictions;
    const ModelExport plan = ValueOrThrow(ModelExport::Plan(source, desc, folder));
    RunByLeader(RanksOfProcess(), "export_model(\"" + folder + "\")", [&](const std::stop_token& stop) {
      return plan.Write(*scope.value, {stop, {}});
    });
  }

  /// What was prepared for a run, taken out for it; null: nothing. A program that has changed since, or for whose rows
  /// there is no room, is not prepared any more.
  std::unique_ptr<PreparedProgram> TakePrepared(const PreparedProgram::Key& key, int rows) {
    std::erase_if(prepared_, [&](const auto& other) {
      return other->key().program == key.program && other->key().version != key.version;
    });
    const auto found =
        std::find_if(prepared_.begin(), prepared_.end(), [&](const auto& other) { return other->key() == key; });
    if (found == prepared_.end()) return nullptr;
    std::unique_ptr<PreparedProgram> taken = std::move(*found);
    prepared_.erase(found);
    return rows <= taken->max_rows() ? std::move(taken) : nullptr;
  }
  /// Keeps it for the next run, in the place of the one that was used longest ago where there are many.
  void KeepPrepared(std::unique_ptr<PreparedProgram> prepared) {
    constexpr size_t kKept = 8;
    if (prepared_.size() == kKept) prepared_.erase(prepared_.begin());
    prepared_.push_back(std::move(prepared));
  }
  const PreparedProgram::Trained& trained(int64_t key) { return trained_[key]; }
  void SetTrained(int64_t key, const PreparedProgram::Trained& trained) {
    if (trained.step != trained_[key].step) ++version_;
    trained_[key] = trained;
  }
  /// A run that failed has changed parameters, too.
  void Changed() { ++version_; }
  int64_t step() const {
    int64_t sum = 0;
    for (const auto& [key, trained] : trained_) sum += trained.step;
    return sum;
  }
  /// Another one after all that changes parameters.
  uint64_t version() const { return version_; }
  SeenCounts* seen() { return &seen_; }
  std::unique_ptr<Scope>& scope() { return scope_; }
  RunState State(int64_t key) {
    RunState state;
    state.step = trained_[key].step;
    state.examples = trained_[key].examples;
    return state;
  }

 private:
  using TablePtr = std::unique_ptr<SparseTable>;

  /// The variables alone of a program that are a parameter, and what its updates keep of it.
  static ProgramDesc PartOfParameter(const ProgramDesc& program, const std::string& name) {
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
  static Status ShrinkTables(Scope& scope, std::map<std::string, std::pair<int64_t, int64_t>>* shrunk) {
    for (const std::string& name : scope.Names()) {
      Variable* variable = scope.Find(name);
      if (variable == nullptr || !variable->Is<TablePtr>()) continue;
      CountedTable* const table = AsCounted(variable->Get<TablePtr>().get());
      if (table == nullptr) continue;
      MR_ASSIGN(const ShrinkReport report, table->Shrink(ThreadsHere()));
      (*shrunk)[name] = {report.rows, report.deleted};
    }
    if (!shrunk->empty()) return Status::Ok();
    return InvalidConfig(
        "shrink: no table of the scope has an accessor; embedding(accessor=) makes one, and the "
        "startup program the table");
  }
  /// Reads what a checkpoint holds.
  static Status ReadInto(const FoundCheckpoint& found, const ProgramDesc& desc, const TableFactory& tables, int threads,
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
  /// The variables whose values tables are asked for.
  static std::vector<std::string> LookedUp(const ProgramDesc& program) {
    std::vector<std::string> names;
    for (const BlockDesc& block : program.blocks()) {
      for (const OpDesc& op : block.ops()) {
        if (!op.type().starts_with("lookup_table")) continue;
        for (std::string& name : InputArguments(op, "Ids")) names.push_back(std::move(name));
      }
    }
    return names;
  }
  /// A variable of a loaded model takes the place of a tensor of its kind, never that of a table, whose optimizer's
  /// state it has not.
  static void CheckRoomFor(const Variable& loaded, const std::string& name, const Scope& scope) {
    const Variable* there = scope.Find(name);
    if (there == nullptr || there->empty()) return;
    const bool both = loaded.Is<Tensor>() && there->Is<Tensor>();
    if (both && loaded.Get<Tensor>().dims() == there->Get<Tensor>().dims()) return;
    throw StatusError(AlreadyExists("the scope has another \"" + name +
                                    "\", which the model's would replace; load it into a scope of its own: with "
                                    "millrace.scope_guard(millrace.Scope())"));
  }

  TablesOfRanks tables_;
  std::unique_ptr<Scope> scope_ = std::make_unique<Scope>();
  std::vector<std::unique_ptr<PreparedProgram>> prepared_;  ///< go before the scope; the one used last is last
  std::map<int64_t, PreparedProgram::Trained> trained_;     ///< by program
  std::map<int64_t, uint64_t> run_ids_;                     ///< of checkpoints that were written or loaded, by program
  /// Variables of a program have other values than before: what was counted by their names is gone.
  void MadeAnew(const ProgramDesc& program) {
    ++version_;
    for (const VarDesc& var : program.blocks(0).vars()) {
      seen_.erase(var.name());
      made_.insert(var.name());
    }
  }

  uint64_t version_ = 1;
  SeenCounts seen_;
  std::set<std::string> made_;  ///< since TakeMade
};

/// An InMemoryDataset that outlives runs: loaded once, trained on as often as one likes. Ranks make it together, and
/// each has the rows of its files.
class PyMemory {
 public:
  explicit PyMemory(const std::string& text) : ranks_(RanksOfProcess()) {
    Result<LoadedConfig> read = ReadOwnDesc("dataset", text, false, false);
    if (ranks_.are_several()) {
      RunInterruptibly([&](const std::stop_token& stop) { ThrowUnlessOk(ShareFiles(&read, stop)); });
    }
    const LoadedConfig config = ValueOrThrow(std::move(read));
    DatasetSettings settings = DatasetSettings::FromDesc(*config.desc);
    settings.threads = config.desc->thread_num();
    // Before they are exchanged, not all rows of a name are here.
    settings.rows.are_exchanged = ranks_.are_several();
    merges_names_ = config.desc->dataset().merge_by_lineid();
    const Environment& environment = SharedEnvironment();
    dataset_ = ValueOrThrow(environment.datasets.Create("InMemoryDataset", config.desc->data_desc(), config.files,
                                                        environment.feeds, settings));
  }
  ~PyMemory() {  // NOLINT(bugprone-exception-escape): releasing the GIL throws nothing
    // A preload in the background is waited for.
    const py::gil_scoped_release released;
    dataset_.reset();
  }
  PyMemory(const PyMemory&) = delete;
  PyMemory& operator=(const PyMemory&) = delete;

  /// Rows, and what was left out of them, in words.
  using Loaded = std::pair<int64_t, std::string>;
  static Result<Loaded> LoadedOf(const Result<PassStats>& stats) {
    MR_TRY(stats.status());
    return Loaded(stats->rows, LeftOutLine(*stats));
  }

  Loaded Load() {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    InMemoryDataset& memory = Memory(*dataset.value);
    return RunInterruptibly<Loaded>(
        [&](std::stop_token stop) { return LoadedOf(memory.LoadIntoMemory(std::move(stop))); });
  }
  void Preload() {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    preload_ = std::stop_source();
    ThrowUnlessOk(Memory(*dataset.value).PreloadIntoMemory(preload_.get_token()));
  }
  Loaded WaitPreload() {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    InMemoryDataset& memory = Memory(*dataset.value);
    return RunInterruptibly<Loaded>([&](const std::stop_token& stop) {
      const std::stop_callback forward(stop, [this] { preload_.request_stop(); });
      return LoadedOf(memory.WaitPreloadDone());
    });
  }
  void Shuffle(uint64_t seed) {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    const py::gil_scoped_release released;
    ThrowUnlessOk(Memory(*dataset.value).LocalShuffle(seed));
  }
  /// Gives each row to the rank that its place chooses, or its name, where lines of a name merge; ranks do it together.
  Loaded GlobalShuffle(uint64_t seed, int64_t most_rows, int64_t pause_seconds) {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    InMemoryDataset& memory = Memory(*dataset.value);
    PassStats stats;
    if (ranks_.are_several()) {
      ranks_.Together("global_shuffle");
      RowShuffle shuffle;
      shuffle.ranks = ranks_.group;
      shuffle.targets.seed = seed;
      shuffle.targets.streams = ranks_.group->size();
      shuffle.targets.by = merges_names_ ? RowTargets::By::kName : RowTargets::By::kPlace;
      shuffle.most_rows = most_rows;
      shuffle.pause_of_rounds = std::chrono::seconds(pause_seconds);
      InMemoryDataset* const all = &memory;
      RunInterruptibly([&](const std::stop_token& stop) {
        ThrowUnlessOk(ExchangeRows(shuffle, {&all, 1}, ranks_.group->rank(), files_of_all_, &stats.counters, stop));
      });
    }
    WithoutGil([&] { ThrowUnlessOk(memory.LocalShuffle(seed)); });
    return {memory.MemoryDataSize(), LeftOutLine(stats)};
  }
  void SlotsShuffle(const std::vector<std::string>& slots, uint64_t seed, int64_t candidates) {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    ThrowUnlessOk(Memory(*dataset.value).SlotsShuffle(slots, seed, candidates));
  }
  void SetPhase(bool join) {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    ThrowUnlessOk(Memory(*dataset.value).SetPhases({join ? PassPhase::kJoin : PassPhase::kUpdate}));
  }
  void SetBatches(int batch_size, int pv_batch_size, bool drop_last) {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    ThrowUnlessOk(Memory(*dataset.value).SetBatches(batch_size, pv_batch_size, drop_last));
  }
  void Release() {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    const py::gil_scoped_release released;
    Memory(*dataset.value).ReleaseMemory();
  }
  int64_t Size() {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    return Memory(*dataset.value).MemoryDataSize();
  }
  int64_t PvSize() {
    const ExclusiveAccess<Dataset> dataset(dataset_, "dataset");
    return Memory(*dataset.value).PvDataSize();
  }

  std::unique_ptr<Dataset>& dataset() { return dataset_; }

 private:
  static InMemoryDataset& Memory(Dataset& dataset) { return dynamic_cast<InMemoryDataset&>(dataset); }
  /// Leaves this rank its part of the files: each rank's own, or those of the list of all in turn.
  Status ShareFiles(Result<LoadedConfig>* read, const std::stop_token& stop) {
    MR_ASSIGN(const std::vector<std::vector<std::string>> lists, FileLists(ranks_, "load_into_memory", *read, stop));
    MR_ASSIGN(const std::vector<std::string> all, FilesOfRanks(lists));
    if (all.empty()) return NoFilesOnAnyRank();
    const bool is_one = std::all_of(lists.begin(), lists.end(), [&](const auto& list) { return list == lists[0]; });
    const auto ranks = lists.size();
    const auto me = static_cast<size_t>(ranks_.group->rank());
    std::vector<std::string> own;
    for (size_t i = 0; i < lists[me].size(); ++i) {
      if (!is_one || i % ranks == me) own.push_back(lists[me][i]);
    }
    // File k of rank r is number k * ranks + r, which is what rows that go to other ranks say.
    files_of_all_.clear();
    for (size_t i = 0; is_one && i < lists[0].size(); ++i) files_of_all_.push_back(lists[0][i]);
    for (size_t r = 0; !is_one && r < ranks; ++r) {
      for (size_t k = 0; k < lists[r].size(); ++k) {
        files_of_all_.resize(std::max(files_of_all_.size(), k * ranks + r + 1));
        files_of_all_[k * ranks + r] = lists[r][k];
      }
    }
    (*read)->files = std::move(own);
    return Status::Ok();
  }

  const ProcessRanks& ranks_;
  std::vector<std::string> files_of_all_;
  bool merges_names_ = false;
  std::unique_ptr<Dataset> dataset_;
  std::stop_source preload_;
};

/// Keeps what was fetched, and prints it unless `is_quiet`. Thread-safe.
class History final : public RunReporter {
 public:
  explicit History(bool is_quiet) : is_quiet_(is_quiet) {}
  void OnTick(const RunProgress& /*progress*/) override {}
  Status OnLoad(const PassStats& /*load*/) override { return Status::Ok(); }
  Status OnFetch(const FetchLine& line) override {
    {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    }
    return is_quiet_ ? Status::Ok() : PrintInPython(FetchText(line));
  }
  Status OnPoint(const FetchLine& /*line*/) override { return Status::Ok(); }
  Status OnEval(const EvalReport& /*report*/) override { return Status::Ok(); }
  Status OnPass(const PassReport& /*report*/) override { return Status::Ok(); }

  py::list ToList() const { return HistoryList(lines_); }

 private:
  const bool is_quiet_;
  std::mutex mutex_;
  std::vector<FetchLine> lines_;
};

/// Shows variables to a Python object every so often. StopTraining asks `stop` to end the run at this batch's end; what
/// else it raises ends the run at once and goes on to the caller.
class PyFetchHandler final : public FetchHandler {
 public:
  /// `handler` has var_dict (key: variable's name), period_secs and handler(dict). Made and gone under the GIL.
  PyFetchHandler(py::object handler, std::stop_source stop)
      : handler_(std::move(handler)),
        stop_(std::move(stop)),
        variables_(handler_.attr("_names")().cast<std::map<std::string, std::string>>()),
        period_seconds_(handler_.attr("period_secs").cast<double>()) {}

  std::map<std::string, std::string> variables() const override { return variables_; }
  double period_seconds() const override { return period_seconds_; }
  Status Handle(const std::map<std::string, const Tensor*>& values) override {
    const py::gil_scoped_acquire acquired;
    try {
      py::dict shown;
      for (const auto& [key, tensor] : values) {
        shown[py::str(key)] = tensor == nullptr ? py::object(py::none()) : py::object(ToArray(*tensor));
      }
      handler_.attr("handler")(shown);
      return Status::Ok();
    } catch (py::error_already_set& error) {
      if (error.matches(py::module_::import("millrace.errors").attr("StopTraining"))) {
        has_stopped_ = true;
        stop_.request_stop();
        return Cancelled("the fetch handler stopped the training");
      }
      raised_ = std::make_unique<py::error_already_set>(std::move(error));
      return InvalidConfig("the fetch handler raised an exception");
    }
  }
  /// Whether the handler raised StopTraining.
  bool has_stopped() const { return has_stopped_; }
  /// Raises what the handler raised, if it did.
  void Rethrow() const {
    if (raised_ != nullptr) throw py::error_already_set(*raised_);
  }

 private:
  py::object handler_;
  std::stop_source stop_;
  std::atomic<bool> has_stopped_{false};
  std::map<std::string, std::string> variables_;
  double period_seconds_;
  std::unique_ptr<py::error_already_set> raised_;
};

/// Within the handling of a failure: throws EndOfDataError in its place when it is that of reading past a reader's end.
void ThrowEndOfData(const Scope& scope) {
  try {
    throw;
  } catch (const StatusError& error) {
    if (error.status().code() != StatusCode::kNotFound) return;
    for (const std::string& name : scope.Names()) {
      const Variable* variable = scope.Find(name);
      if (!variable->Is<ReaderHolder>() || !variable->Get<ReaderHolder>().is_at_end()) continue;
      throw EndOfDataError(error.status());
    }
  } catch (...) {
    return;
  }
}

/// kBadData when what was trained is no longer finite, as where a model is to be saved; with allow_non_finite it is
/// only said.
Status CheckTrained(const JobSession& session) {
  const CompiledJob& job = session.job();
  if (job.desc().infer()) return Status::Ok();
  const Status finite = CheckFiniteVariables(job.model().main, session.root());
  if (finite.ok()) return Status::Ok();
  if (job.desc().allow_non_finite()) {
    Say("warning: " + finite.message() + "\n");
    return Status::Ok();
  }
  return {
      finite.code(),
      finite.message() +
          "\nthe scope holds them now, and load_persistables or load_checkpoint brings back what was saved; lower the "
          "learning rate, clip gradients, or look at the input; allow_non_finite=True lets it pass"};
}

/// The lines by which ranks see that they train the same program by the same settings.
std::string JobText(const LoadedConfig& config) {
  TrainerDesc desc = *config.desc;
  // Each rank has the program in a folder of its own.
  const std::string path = desc.program().main();
  desc.clear_program();
  desc.clear_filelist();
  // What rank 0 alone shows.
  desc.clear_fetch_config();
  desc.clear_debug();
  std::string text = PrintConfig(desc);
  const Result<std::string> bytes = ReadFile(path);
  const Result<ProgramDesc> program =
      bytes.ok() ? ParseProgram(*bytes, "program") : Result<ProgramDesc>(bytes.status());
  if (!program.ok()) return text + program.status().message();
  const BlockDesc& block = program->blocks(0);
  text += PrintOps(std::vector<OpDesc>(block.ops().begin(), block.ops().end()));
  return text + "the program's bytes: " + std::to_string(HashName(*bytes)) + "\n";
}

/// Lets the ranks of a script compare what each was told to train, and puts the files of all into the job, unless it
/// has its rows in memory.
Status CompareJobs(const ProcessRanks& ranks, bool has_rows, Result<LoadedConfig>* job, const std::stop_token& stop) {
  const bool infer = job->ok() && (*job)->desc->infer();
  const std::string call = infer ? "infer_from_dataset" : "train_from_dataset";
  MR_ASSIGN(const std::vector<std::vector<std::string>> lists, FileLists(ranks, call, *job, stop));
  MR_TRY(CheckSameText(*ranks.group, JobText(**job)));
  if (has_rows) return Status::Ok();
  MR_ASSIGN((*job)->files, FilesOfRanks(lists));
  if ((*job)->files.empty()) return NoFilesOnAnyRank();
  return CheckSameSizes(*ranks.group, (*job)->files);
}

/// Lets all ranks start where the one that leads stands.
Status StartAsLeader(RankGroup& ranks, const JobSession& session, Scope& root, RunState* state) {
  if (!session.job().desc().infer()) MR_TRY(TakeDenseOfLeader(session.job().model().main, root, ranks));
  std::string bytes;
  WireWriter out(&bytes);
  out.Put(state->step);
  out.Put(state->examples);
  MR_TRY(ranks.FromLeader(&bytes));
  WireReader in(bytes);
  state->step = in.Get<int64_t>();
  state->examples = in.Get<int64_t>();
  return Status::Ok();
}

/// Trains a session; its ranks fail together. What is asked to stop by `stop`, and not by `ended` alone, is interrupted
/// on all ranks.
Result<RunReport> Train(JobSession& session, TrainerHooks hooks, std::stop_source& ended, const std::stop_token& stop) {
  RankGroup& ranks = session.ranks();
  Result<std::unique_ptr<Trainer>> trainer = CreateTrainer(session, std::move(hooks));
  MR_TRY(ranks.Agree(trainer.status()));
  const std::stop_callback forward(stop, [&ended] { ended.request_stop(); });
  Result<RunReport> report = Caught("training", [&] { return (*trainer)->Run(ended.get_token()); });
  const Status agreed = ranks.Agree(report.status());
  if (!report.ok()) return report;  // which says whose failure it was
  MR_TRY(agreed);
  MR_TRY(ranks.Agree(session.leads() ? CheckTrained(session) : Status::Ok()));
  if (ranks.size() > 1) {
    MR_TRY(ranks.Agree(stop.stop_requested() ? Cancelled("the training was interrupted") : Status::Ok()));
  }
  return report;
}

/// Trains (or infers) as a TrainerDesc says, on the scope's parameters and, if there is one, a loaded dataset; with
/// `on_ranks` together with the other ranks, if there are some. With `measures` what its `auc` operators count is of
/// this run alone. Of ranks the one that leads has the whole report.
py::dict RunDataset(PyScope& on, const std::string& text, PyMemory* memory, const py::object& handler, bool measures,
                    int64_t key, bool is_quiet, bool on_ranks) {
  const auto start = std::chrono::steady_clock::now();
  const ProcessRanks& ranks = on_ranks ? RanksOfProcess() : AloneInProcess();
  Result<LoadedConfig> config = ReadOwnDesc("train_from_dataset", text, true, ranks.are_several());
  if (ranks.are_several()) {
    RunInterruptibly(
        [&](const std::stop_token& stop) { ThrowUnlessOk(CompareJobs(ranks, memory != nullptr, &config, stop)); });
  }
  std::unique_ptr<PyFetchHandler> fetch_handler;
  std::stop_source ended;
  if (!handler.is_none()) fetch_handler = std::make_unique<PyFetchHandler>(handler, ended);
  const auto watched = fetch_handler != nullptr ? WatchedBy(*fetch_handler) : std::vector<std::string>();
  const auto compiled = CompiledJob::Create(ValueOrThrow(std::move(config)), SharedEnvironment(), "", watched);
  AgreeOrThrow(ranks, compiled.status());
  const std::shared_ptr<const CompiledJob>& job = *compiled;
  ExclusiveAccess<Scope> scope(on.scope(), "scope");
  ProgramCounters counts(job->model().main);
  const ScopedCounters counting(measures ? &counts : nullptr, *scope.value, on.version(), on.seen());
  std::optional<ExclusiveAccess<Dataset>> dataset;
  if (memory != nullptr) dataset.emplace(memory->dataset(), "dataset");
  std::optional<RowsOfRank> own_rows;
  if (dataset && ranks.are_several()) own_rows.emplace(*dataset->value, ranks.group->rank());
  SessionInputs inputs{scope.value.get(), dataset ? dataset->value.get() : nullptr, fetch_handler.get(),
                       ranks.of_session()};
  if (own_rows) inputs.dataset = &*own_rows;
  const Result<std::unique_ptr<JobSession>> made = JobSession::Create(job, inputs);
  AgreeOrThrow(ranks, made.status());
  JobSession& session = **made;
  History history(is_quiet);
  RunState before = on.State(key);
  RunState reached = before;
  const auto train = [&](const std::stop_token& stop) -> Result<RunReport> {
    MR_TRY(StartAsLeader(session.ranks(), session, *scope.value, &before));
    reached = before;
    TrainerHooks hooks;
    if (session.leads()) hooks.reporter = &history;
    hooks.reached = &reached;
    hooks.resume = before;
    hooks.resume->metric_totals = job->metrics().NewTotals();
    return Train(session, std::move(hooks), ended, stop);
  };
  const auto count = [&] {
    if (job->desc().infer()) return;
    on.Changed();
    on.SetTrained(key, {reached.step, reached.examples});
  };
  RunReport report;
  try {
    report = RunInterruptibly<RunReport>(train);
  } catch (...) {
    count();
    if (fetch_handler != nullptr) fetch_handler->Rethrow();
    ThrowEndOfData(*scope.value);
    throw;
  }
  count();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const int processes = ranks.are_several() ? ranks.group->size() : 0;
  py::dict dict =
      ReportDict(Summarize(report, std::max(1, processes) * job->workers(), seconds.count(), {.count = processes}));
  if (fetch_handler != nullptr && fetch_handler->has_stopped()) {
    dict["stopped_early"] = true;
    // The pass that it ended counts as over where the run has no other.
    if (!report.interrupted) dict["epochs"] = report.state.epoch - 1;
  }
  dict["history"] = history.ToList();
  int64_t non_finite = session.non_finite_losses().count();
  WithoutGil([&] { ThrowUnlessOk(ranks.group->communicator().SumOverRanks({&non_finite, 1})); });
  dict["non_finite_losses"] = non_finite;
  return dict;
}

/// One run of a program on arrays, of which `program` says number and version, and `serialize` gives the bytes. What
/// was prepared for an earlier run serves again.
py::list RunProgram(PyScope& on, const std::pair<int64_t, int64_t>& program, const py::function& serialize,
                    const std::vector<FedArray>& feeds, const std::vector<std::string>& fetches, uint64_t seed,
                    ProgramCounters* counts, int64_t program_key) {
  PreparedProgram::Key key{program.first, program.second, fetches, seed};
  const int rows = RowsOf(feeds);
  if (rows == 0 && !feeds.empty()) throw StatusError(InvalidConfig("feed: the batch has no rows"));
  RanksOfProcess();  // rows may lie on others
  const ExclusiveAccess<Scope> scope(on.scope(), "scope");
  // Taken out for the run: a failure leaves nothing half bound behind.
  std::unique_ptr<PreparedProgram> prepared = on.TakePrepared(key, rows);
  if (prepared == nullptr) {
    prepared = std::make_unique<PreparedProgram>(std::move(key), serialize().cast<std::string>(), rows, *scope.value);
  }
  // Rounds of a loop before one that fails were steps too.
  struct Counted {
    ~Counted() { on.SetTrained(key, trained); }
    PyScope& on;
    int64_t key;
    PreparedProgram::Trained trained;
  } counted{on, program_key, on.trained(program_key)};
  const ScopedCounters counting(counts, *scope.value, on.version(), on.seen());
  try {
    py::list results = prepared->Run(feeds, &counted.trained);
    on.KeepPrepared(std::move(prepared));
    return results;
  } catch (const StatusError&) {
    ThrowEndOfData(*scope.value);
    throw;
  }
}

}  // namespace

void BindSession(py::module_& module) {
  py::class_<PyScope>(module, "Scope")
      .def(py::init<>())
      .def("run_startup", &PyScope::RunStartupProgram)
      .def("get", &PyScope::Get)
      .def("set", &PyScope::Set)
      .def("set_seen", &PyScope::SetSeen)
      .def("seen", &PyScope::Seen)
      .def("take_made", &PyScope::TakeMade)
      .def("queue_holder", &PyScope::QueueHolder, py::return_value_policy::reference_internal)
      .def("reset_reader", &PyScope::ResetReader)
      .def("items_read", &PyScope::ItemsRead)
      .def("names", &PyScope::NamesOfAll)
      .def("shrink", &PyScope::Shrink)
      .def("save", &PyScope::Save)
      .def("load", &PyScope::Load)
      .def("load_weights", &PyScope::LoadWeights)
      .def("load_table", &PyScope::LoadTable)
      .def("table_size", &PyScope::TableSize)
      .def("save_checkpoint", &PyScope::SaveCheckpoint)
      .def("load_checkpoint", &PyScope::LoadCheckpoint)
      .def("load_model", &PyScope::LoadModel)
      .def("save_model", &PyScope::SaveModel)
      .def("export_model", &PyScope::ExportModel)
      .def_property_readonly("step", &PyScope::step);
  py::class_<PyMemory>(module, "Memory")
      .def(py::init<const std::string&>())
      .def("load", &PyMemory::Load)
      .def("preload", &PyMemory::Preload)
      .def("wait_preload", &PyMemory::WaitPreload)
      .def("shuffle", &PyMemory::Shuffle)
      .def("global_shuffle", &PyMemory::GlobalShuffle)
      .def("slots_shuffle", &PyMemory::SlotsShuffle)
      .def("set_phase", &PyMemory::SetPhase)
      .def("set_batches", &PyMemory::SetBatches)
      .def("release", &PyMemory::Release)
      .def("size", &PyMemory::Size)
      .def("pv_size", &PyMemory::PvSize);
  module.def("run_dataset", &RunDataset, py::arg("scope"), py::arg("text"), py::arg("memory").none(true),
             py::arg("handler"), py::arg("measures"), py::arg("key"), py::arg("is_quiet"), py::arg("on_ranks"));
  py::class_<ProgramCounters>(module, "ProgramCounters").def(py::init([](const std::string& program) {
    return ProgramCounters(ProgramOf(program));
  }));
  module.def("run_program", &RunProgram, py::arg("scope"), py::arg("program"), py::arg("serialize"), py::arg("feeds"),
             py::arg("fetches"), py::arg("seed"), py::arg("counts").none(true), py::arg("key"));
  module.def("programs_prepared", &PreparedProgram::made);
  module.def("counters", [](const std::string& program) { return CountersOf(ProgramOf(program)); });
  module.def("unread_counters", [](const std::string& program) { return UnreadCountersOf(ProgramOf(program)); });
}

}  // namespace millrace
