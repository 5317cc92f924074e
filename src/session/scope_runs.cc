// Runs of programs and training calls on a TrainedScope.

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/caught.h"
#include "core/wire.h"
#include "core/words.h"
#include "dataset/rows_of_rank.h"
#include "ranks/dense_of_leader.h"
#include "reader/reader_holder.h"
#include "report/batch_observers.h"
#include "runtime/finite_variables.h"
#include "session/open_job.h"
#include "session/script_job.h"
#include "session/trained_scope.h"
#include "trainer/builtin_trainers.h"

namespace millrace {
namespace {

/// Whether a failure is a read past the end of one of the scope's readers.
bool IsEndOf(const Scope& scope, const Status& failure) {
  if (failure.code() != StatusCode::kNotFound) return false;
  const std::vector<std::string> names = scope.Names();
  return std::any_of(names.begin(), names.end(), [&scope](const std::string& name) {
    const Variable* variable = scope.Find(name);
    return variable->Is<ReaderHolder>() && variable->Get<ReaderHolder>().is_at_end();
  });
}

/// kBadData if trained parameters are no longer finite; with allow_non_finite a warning.
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

/// Gives all ranks the parameters and the position of the rank that leads.
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

/// Trains a session; its ranks fail together. A request by `stop`, but not one by `ended`, is an interrupt on all
/// ranks.
Result<RunReport> TrainSession(JobSession& session, TrainerHooks hooks, std::stop_source& ended,
                               const std::stop_token& stop) {
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

}  // namespace

ProgramRun::~ProgramRun() { on_->SetTrained(key_, trained_); }

void ProgramRun::Keep(std::span<const FedTensor> feeds) {
  prepared_->ForgetFeeds(feeds);
  on_->KeepPrepared(std::move(prepared_));
}

bool ProgramRun::IsEndOfData(const Status& failure) const { return IsEndOf(*scope_, failure); }

std::unique_ptr<PreparedProgram> TrainedScope::TakePrepared(const PreparedProgram::Key& key, int rows) {
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

void TrainedScope::KeepPrepared(std::unique_ptr<PreparedProgram> prepared) {
  constexpr size_t kKept = 8;
  if (prepared_.size() == kKept) prepared_.erase(prepared_.begin());
  prepared_.push_back(std::move(prepared));
}

Result<std::unique_ptr<ProgramRun>> TrainedScope::BeginRun(const CallContext& context, PreparedProgram::Key key,
                                                           int rows, const std::function<std::string()>& serialize,
                                                           ProgramCounters* counts, int64_t program_key) {
  MR_ASSIGN(Lease scope, scope_.TryAcquire());
  std::unique_ptr<ProgramRun> run(new ProgramRun(this, std::move(scope), program_key));
  run->trained_ = trained(program_key);
  // Removed from prepared_ for the run: after a failure no views of the feeds remain.
  run->prepared_ = TakePrepared(key, rows);
  if (run->prepared_ == nullptr) {
    MR_ASSIGN(run->prepared_, PreparedProgram::Create(std::move(key), serialize(), rows, *run->scope_, context));
  }
  run->counting_.emplace(counts, *run->scope_, version_, &seen_);
  return run;
}

Status TrainedScope::Train(const CallContext& context, const DatasetRun& run, DatasetRunResult* result) {
  const auto start = std::chrono::steady_clock::now();
  const ProcessRanks& ranks = context.ranks;
  RankGroup& group = *ranks.group;
  Result<LoadedConfig> config =
      ReadScriptJob(context.environment, "train_from_dataset", run.text, true, ranks.are_several());
  if (ranks.are_several()) MR_TRY(CompareJobs(context, run.memory != nullptr, &config));
  MR_TRY(config.status());
  OpenOptions options;
  options.reads_input = false;
  if (run.fetch_handler != nullptr) options.watched = WatchedBy(*run.fetch_handler);
  Result<Lease> leased = scope_.Acquire();
  MR_TRY(group.Agree(leased.status()));
  const Lease scope = std::move(leased).value();
  std::optional<Exclusive<InMemoryDataset>::Lease> dataset;
  std::optional<RowsOfRank> own_rows;
  options.inputs = {&*scope, nullptr, run.fetch_handler, ranks.of_session()};
  if (run.memory != nullptr) {
    auto rows = run.memory->Acquire();
    MR_TRY(group.Agree(rows.status()));
    dataset.emplace(std::move(rows).value());
    if (ranks.are_several()) own_rows.emplace(**dataset, group.rank());
    options.inputs.dataset = own_rows ? static_cast<Dataset*>(&*own_rows) : &**dataset;
  }
  std::optional<ProgramCounters> counts;
  std::optional<ScopedCounters> counting;
  options.on_compiled = [&](const CompiledJob& job) {
    counts.emplace(job.model().main);
    counting.emplace(run.measures ? &*counts : nullptr, *scope, version_, &seen_);
  };
  MR_ASSIGN(const OpenedJob opened,
            OpenJob(group, std::move(config).value(), context.environment, std::move(options), context.stop));
  const CompiledJob& job = *opened.job;
  JobSession& session = *opened.session;
  const PreparedProgram::Trained so_far = trained(run.key);
  RunState before;
  before.step = so_far.step;
  before.examples = so_far.examples;
  RunState reached = before;
  const auto train = [&]() -> Result<RunReport> {
    MR_TRY(StartAsLeader(session.ranks(), session, *scope, &before));
    reached = before;
    TrainerHooks hooks;
    if (session.leads()) hooks.reporter = run.reporter;
    hooks.reached = &reached;
    hooks.resume = before;
    hooks.resume->metric_totals = job.metrics().NewTotals();
    std::stop_source ended = run.ended;
    return TrainSession(session, std::move(hooks), ended, context.stop);
  };
  const Result<RunReport> report = train();
  if (!job.desc().infer()) {
    ++version_;  // a failed run has changed parameters as well
    SetTrained(run.key, {reached.step, reached.examples});
  }
  if (!report.ok()) {
    result->is_end_of_data = IsEndOf(*scope, report.status());
    return report.status();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const int processes = ranks.are_several() ? group.size() : 0;
  result->summary = Summarize(*report, std::max(1, processes) * job.workers(), seconds.count(), {.count = processes});
  result->state = report->state;
  result->interrupted = report->interrupted;
  result->non_finite_losses = session.non_finite_losses().count();
  return group.communicator().SumOverRanks({&result->non_finite_losses, 1});
}

}  // namespace millrace
