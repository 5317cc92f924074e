#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataset/dataset.h"
#include "job/fetch_handler.h"
#include "job/run_hooks.h"
#include "reader/array_queue.h"
#include "report/run_summary.h"
#include "runtime/scope.h"
#include "serving/predictor.h"
#include "session/call_context.h"
#include "session/exclusive.h"
#include "session/memory_rows.h"
#include "session/prepared_program.h"
#include "session/program_counters.h"

namespace millrace {

class TrainedScope;

/// One run of a program on tensors: holds the scope until it is destroyed. One thread at a time.
class ProgramRun {
 public:
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;
  /// Notes in the scope what was trained, even if Run failed.
  ~ProgramRun();

  /// PreparedProgram's, with its errors.
  Status Run(std::span<const FedTensor> feeds, const std::stop_token& stop) {
    return prepared_->Run(feeds, &trained_, stop);
  }
  Result<const Tensor*> Fetched(const std::string& name) const { return prepared_->Fetched(name); }
  PreparedProgram& prepared() { return *prepared_; }
  /// After a successful run: keeps the prepared program for the next one.
  void Keep(std::span<const FedTensor> feeds);
  /// Whether a run failed because it read past the end of a reader.
  bool IsEndOfData(const Status& failure) const;

 private:
  friend class TrainedScope;
  ProgramRun(TrainedScope* on, Exclusive<Scope>::Lease scope, int64_t key)
      : on_(on), scope_(std::move(scope)), key_(key) {}

  TrainedScope* on_;
  Exclusive<Scope>::Lease scope_;
  int64_t key_;
  PreparedProgram::Trained trained_;
  std::optional<ScopedCounters> counting_;
  std::unique_ptr<PreparedProgram> prepared_;
};

/// A training (or inference) call on a scope.
struct DatasetRun {
  std::string text;                       ///< a TrainerDesc
  MemoryRows* memory = nullptr;           ///< the rows, in place of files
  FetchHandler* fetch_handler = nullptr;  ///< called with the variables that it watches
  std::stop_source ended;                 ///< ends the run, which is not an interrupt
  RunReporter* reporter = nullptr;        ///< of the rank that leads
  bool measures = false;                  ///< `auc` operators count only this run
  int64_t key = 0;                        ///< of the program; see TrainedScope
};

struct DatasetRunResult {
  RunSummary summary;  ///< complete on the rank that leads
  RunState state;      ///< at the end
  bool interrupted = false;
  int64_t non_finite_losses = 0;  ///< of all ranks
  bool is_end_of_data = false;    ///< of a failure: a reader ended
};

/// The newest intact checkpoint of a folder.
struct RestoredCheckpoint {
  std::string folder;
  int64_t step = 0;
  int64_t examples = 0;
  std::string trainer_args;
  std::vector<std::string> skipped;  ///< damaged or unsuitable checkpoints, with the reasons
};

/// A program's model to be saved for inference.
struct ScopeModel {
  ProgramDesc test;
  ProgramDesc startup;
  std::string data;  ///< a TrainerDesc with the data_desc
  std::string prediction;
  std::vector<std::string> targets;
  std::vector<std::string> pooled;
};

/// The variables of a script, which outlive runs, and how far they were trained. `key` identifies a trained program;
/// copies of a program have the same key. Calls with a CallContext are collectives of its ranks. Thread-safe: while a
/// call uses the variables, another one fails with kAlreadyExists.
class TrainedScope {
 public:
  /// Runs a startup program. The errors of RunStartup and TableOwner::Own.
  Status RunStartupProgram(const CallContext& context, const ProgramDesc& program, uint64_t seed, int64_t key);

  /// Calls `read` with a variable, or null if it is missing.
  Status Read(const std::string& name, const std::function<Status(const Variable*)>& read);
  /// Counts that programs with counters of their own made; the scope's own counts are not included.
  SeenCounts& seen() { return seen_; }
  /// The variables initialized by a startup program or a load since the last call.
  std::vector<std::string> TakeMade();
  /// Sets a tensor from dense row-major values. kInvalidConfig if the variable has another type or shape.
  Status Set(const std::string& name, DType type, const Dims& dims, const void* values);
  /// The queue holder of that name, created if missing. It lives as long as the scope. kAlreadyExists for a variable of
  /// another type.
  Result<PyArrayFeedQueueHolder*> QueueHolder(const std::string& name);
  /// Restarts a reader. kNotFound if the scope has no such reader; the errors of ReaderHolder::ReInit.
  Status ResetReader(const std::string& name);
  /// Items that the scope's readers returned since they were created.
  Result<int64_t> ItemsRead();
  Result<std::vector<std::string>> Names();
  /// (remaining rows, deleted rows) of each table with an accessor, keyed by table. kInvalidConfig without such tables.
  Result<std::map<std::string, std::pair<int64_t, int64_t>>> Shrink(const CallContext& context);
  /// Batches trained by all programs.
  int64_t step() const;

  // Files (session/scope_files.cc). Loads fail with kBadData or kIo for damaged files and with kInvalidConfig for those
  // of another program, and then leave the scope unchanged unless stated otherwise.

  Status Save(const CallContext& context, const ProgramDesc& program, const std::string& folder, uint64_t seed,
              int64_t key);
  /// Returns whether the folder states how far its parameters were trained. After a failure some variables are loaded.
  Result<bool> Load(const CallContext& context, const ProgramDesc& program, const std::string& folder, int64_t key);
  /// Loads one table from a folder that Save wrote: a table that grows, or a matrix and its optimizer's state. A table
  /// that grows and is empty can also be loaded from the folder of a table of Paddle's servers.
  Status LoadTable(const CallContext& context, const ProgramDesc& program, const std::string& name,
                   const std::string& folder);
  /// Loads the weights of a model of SaveModel, after the startup program.
  Status LoadWeights(const CallContext& context, const ProgramDesc& program, const std::string& folder);
  Status SaveCheckpoint(const CallContext& context, const ProgramDesc& program, const std::string& folder, int keep,
                        uint64_t seed, int64_t key, const std::string& trainer_args);
  /// Loads the newest intact checkpoint of a folder, or the checkpoint that is the folder. nullopt if there is none.
  Result<std::optional<RestoredCheckpoint>> LoadCheckpoint(const CallContext& context, const ProgramDesc& program,
                                                           const std::string& folder, int64_t key);
  /// Loads a model and moves its variables into the scope. `root` of the result is empty. kAlreadyExists if the scope
  /// has another variable of the same name.
  Result<LoadedModel> LoadModel(const CallContext& context, const std::string& folder);
  Status SaveModel(const CallContext& context, const ScopeModel& model, const std::string& folder);
  /// `description` is an ExportDesc.
  Status ExportModel(const CallContext& context, const ProgramDesc& test, const std::string& data,
                     const std::vector<std::string>& predictions, const std::string& description,
                     const std::string& folder);

  // Runs (session/scope_runs.cc).

  /// Begins a run of a program. `serialize` returns the bytes of the program of `key`, unless an earlier run prepared
  /// it. `counts` can be null. The errors of PreparedProgram::Create. Prepared programs for other versions are dropped.
  Result<std::unique_ptr<ProgramRun>> BeginRun(const CallContext& context, PreparedProgram::Key key, int rows,
                                               const std::function<std::string()>& serialize, ProgramCounters* counts,
                                               int64_t program_key);
  /// Trains or infers on the scope's parameters. kBadData if parameters are no longer finite; kCancelled on all ranks
  /// if one of them is stopped; the errors of reading, compiling and running the job. `*result` is valid after a
  /// success, `is_end_of_data` also after a failure.
  Status Train(const CallContext& context, const DatasetRun& run, DatasetRunResult* result);

 private:
  friend class ProgramRun;
  using Lease = Exclusive<Scope>::Lease;

  std::unique_ptr<PreparedProgram> TakePrepared(const PreparedProgram::Key& key, int rows);
  void KeepPrepared(std::unique_ptr<PreparedProgram> prepared);
  PreparedProgram::Trained trained(int64_t key) const;
  void SetTrained(int64_t key, const PreparedProgram::Trained& trained);
  /// The variables of a program have new values: counts under their names are obsolete.
  void MadeAnew(const ProgramDesc& program);
  /// The classes of the scope's tables. With several ranks each row has one owner.
  static TableFactory TablesOf(const CallContext& context);

  TableOwner tables_;
  Exclusive<Scope> scope_{"scope", std::make_unique<Scope>()};
  SeenCounts seen_;

  // Used by the call that holds the scope.
  std::vector<std::unique_ptr<PreparedProgram>> prepared_;  ///< destroyed before the scope; the last one was used last
  std::map<int64_t, uint64_t> run_ids_;                     ///< of checkpoints written or loaded, by program
  uint64_t version_ = 1;                                    ///< changes with the parameters

  mutable std::mutex mutex_;                             ///< guards the members below
  std::map<int64_t, PreparedProgram::Trained> trained_;  ///< by program
  std::set<std::string> made_;                           ///< since TakeMade
};

}  // namespace millrace
