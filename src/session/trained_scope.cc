#include "session/trained_scope.h"

#include <cstring>
#include <utility>

#include "core/on_threads.h"
#include "core/wire.h"
#include "ranks/dense_of_leader.h"
#include "reader/reader_holder.h"
#include "runtime/frame.h"
#include "table/counted_table.h"
#include "table/sparse_table.h"

namespace millrace {
namespace {

using TablePtr = std::unique_ptr<SparseTable>;
using ShrunkTables = std::map<std::string, std::pair<int64_t, int64_t>>;

Status ShrinkTables(Scope& scope, ShrunkTables* shrunk) {
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

}  // namespace

TableFactory TrainedScope::TablesOf(const CallContext& context) {
  const TableFactory& tables = context.environment.tables;
  return context.ranks.are_several() ? RankTableFactory(tables, context.ranks.group->tables()) : tables;
}

Status TrainedScope::RunStartupProgram(const CallContext& context, const ProgramDesc& program, uint64_t seed,
                                       int64_t key) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  RankGroup& group = *context.ranks.group;
  prepared_.clear();
  MR_TRY(context.ranks.Together("run(startup_program)", context.stop));
  MR_TRY(group.Agree(tables_.Own(context.ranks, program)));
  const TableFactory tables = TablesOf(context);
  const Environment& environment = context.environment;
  MR_TRY(group.Agree(RunStartup(program, environment.ops, *scope, seed, &environment.readers, &tables, context.stop)));
  MR_TRY(TakeDenseOfLeader(program, *scope, group));
  SetTrained(key, {});
  run_ids_.erase(key);
  MadeAnew(program);
  return Status::Ok();
}

Status TrainedScope::Read(const std::string& name, const std::function<Status(const Variable*)>& read) {
  MR_ASSIGN(const Lease scope, scope_.TryAcquireBriefly());
  return read(scope->Find(name));
}

std::vector<std::string> TrainedScope::TakeMade() {
  const std::lock_guard lock(mutex_);
  const std::set<std::string> made = std::exchange(made_, {});
  return {made.begin(), made.end()};
}

Status TrainedScope::Set(const std::string& name, DType type, const Dims& dims, const void* values) {
  MR_ASSIGN(const Lease scope, scope_.TryAcquireBriefly());
  Variable* variable = scope->Var(name);
  if (!variable->empty() && !variable->Is<Tensor>()) {
    return InvalidConfig("variable \"" + name + "\" holds no tensor");
  }
  auto* tensor = variable->GetMutable<Tensor>();
  if (!tensor->empty() && (tensor->dtype() != type || !(tensor->dims() == dims))) {
    return InvalidConfig("variable \"" + name + "\" is " + std::string(DTypeName(tensor->dtype())) + " " +
                         tensor->dims().ToString() + "; the array is " + std::string(DTypeName(type)) + " " +
                         dims.ToString());
  }
  void* to = tensor->ResizeRaw(type, dims);
  ++version_;
  seen_.Erase(name);
  if (const size_t bytes = BytesOf(*tensor); bytes > 0) std::memcpy(to, values, bytes);
  return Status::Ok();
}

Result<PyArrayFeedQueueHolder*> TrainedScope::QueueHolder(const std::string& name) {
  MR_ASSIGN(const Lease scope, scope_.TryAcquireBriefly());
  Variable* variable = scope->Var(name);
  if (!variable->empty() && !variable->Is<PyArrayFeedQueueHolder>()) {
    return AlreadyExists("variable \"" + name + "\" holds something else than a queue");
  }
  return variable->GetMutable<PyArrayFeedQueueHolder>();
}

Status TrainedScope::ResetReader(const std::string& name) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  Variable* variable = scope->Find(name);
  if (variable == nullptr || !variable->Is<ReaderHolder>()) {
    return NotFound("the scope has no reader \"" + name + "\": run the startup program first");
  }
  return variable->GetMutable<ReaderHolder>()->ReInit().Context("reader \"" + name + "\"");
}

Result<int64_t> TrainedScope::ItemsRead() {
  MR_ASSIGN(const Lease scope, scope_.TryAcquireBriefly());
  int64_t items = 0;
  for (const std::string& name : scope->Names()) {
    const Variable* variable = scope->Find(name);
    if (variable->Is<ReaderHolder>()) items += variable->Get<ReaderHolder>().items();
  }
  return items;
}

Result<std::vector<std::string>> TrainedScope::Names() {
  MR_ASSIGN(const Lease scope, scope_.TryAcquireBriefly());
  return scope->Names();
}

Result<ShrunkTables> TrainedScope::Shrink(const CallContext& context) {
  MR_ASSIGN(const Lease scope, scope_.Acquire());
  RankGroup& group = *context.ranks.group;
  MR_TRY(context.ranks.Together("scope.shrink", context.stop));
  ShrunkTables shrunk;
  // The rank that leads asks the others for their rows.
  MR_TRY(group.Agree(group.leads() ? ShrinkTables(*scope, &shrunk) : Status::Ok()));
  std::string bytes;
  WireWriter out(&bytes);
  for (const auto& [name, rows] : shrunk) {
    out.PutText(name);
    out.Put(rows.first);
    out.Put(rows.second);
  }
  MR_TRY(group.FromLeader(&bytes));
  for (WireReader in(bytes); !in.rest().empty() && in.ok();) {
    const std::string name(in.GetText());
    const auto rows = in.Get<int64_t>();
    shrunk[name] = {rows, in.Get<int64_t>()};
  }
  return shrunk;
}

int64_t TrainedScope::step() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& [key, trained] : trained_) sum += trained.step;
  return sum;
}

PreparedProgram::Trained TrainedScope::trained(int64_t key) const {
  const std::lock_guard lock(mutex_);
  const auto found = trained_.find(key);
  return found == trained_.end() ? PreparedProgram::Trained() : found->second;
}

void TrainedScope::SetTrained(int64_t key, const PreparedProgram::Trained& trained) {
  const std::lock_guard lock(mutex_);
  if (trained.step != trained_[key].step) ++version_;
  trained_[key] = trained;
}

void TrainedScope::MadeAnew(const ProgramDesc& program) {
  ++version_;
  const std::lock_guard lock(mutex_);
  for (const VarDesc& var : program.blocks(0).vars()) {
    seen_.Erase(var.name());
    made_.insert(var.name());
  }
}

}  // namespace millrace
