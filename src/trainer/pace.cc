#include "trainer/pace.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ops/embedding/upcoming_rows.h"
#include "program/counters.h"
#include "ranks/dense_exchange.h"
#include "ranks/rank_pace.h"
#include "ranks/rank_step.h"

namespace millrace {
namespace {

/// Batches between the beginnings of two exchanges of small dense variables, where the last one has ended; between two
/// of all parameters, with two ranks and with more; and exchanges of these for one with what optimizers keep, which
/// changes slowly (docs/adr/0019).
constexpr int kDenseEvery = 2;
constexpr int kParametersEveryOfTwo = 16;
constexpr int kParametersEvery = 8;
constexpr int kRestEvery = 8;
/// Batches, over all ranks, that ranks of a new job train in turns (SharedProgress::serialized_warmup_steps).
constexpr int64_t kInTurns = 32;

/// Whether rows can be requested before they are pulled. A fetch creates rows, so inference does not fetch.
bool MayFetch(const JobSession& session) { return session.ranks().size() > 1 && !session.job().desc().infer(); }

/// The workers themselves count steps, for checkpoint.every_steps and eval.every_steps, and pause together.
class CountedPace : public Pace {
 public:
  CountedPace(const JobSession& session, TrainingRun& run) {
    const TrainerDesc& desc = session.job().desc();
    run.progress().pause_every = run.SavesCheckpoints() ? desc.checkpoint().every_steps() : 0;
    run.progress().eval_every = session.has_evaluations() ? desc.eval().every_steps() : 0;
  }
  std::unique_ptr<BatchSource> SourceOf(int /*worker*/, BatchSource& /*source*/) final { return nullptr; }
  void StartPass() final {}
  Result<bool> HaveAllEnded() final { return true; }
  Result<Standing> StandStill(bool /*has_failed*/) final { return Standing{}; }
  void LookForPause() final {}
};

/// For a job without `dist`.
class SoloPace final : public CountedPace {
 public:
  SoloPace(const JobSession& session, TrainingRun& run, PauseGate& gate) : CountedPace(session, run), gate_(&gate) {}
  Status AddTo(int /*index*/, Dataset& /*dataset*/, WorkerParts* /*parts*/) override { return Status::Ok(); }
  void AskForPause(bool /*is_stop*/) override { gate_->Ask(); }
  void ReportFailure() override {}
  void StopReading() override {}

 private:
  PauseGate* gate_;
};

/// For a rank with one SyncWorker: each step agrees on whether a pause follows it.
class StepPace final : public CountedPace {
 public:
  StepPace(JobSession& session, TrainingRun& run) : CountedPace(session, run), session_(&session) {}
  Status AddTo(int index, Dataset& dataset, WorkerParts* parts) override;
  void AskForPause(bool is_stop) override {
    wants_pause_ = true;
    if (is_stop) stop_reading_.request_stop();
  }
  void ReportFailure() override { AskForPause(true); }
  void StopReading() override { stop_reading_.request_stop(); }

 private:
  JobSession* session_;
  std::unique_ptr<RankStep> step_;
  std::unique_ptr<UpcomingRows> upcoming_;
  std::atomic<bool> wants_pause_{false};
  std::stop_source stop_reading_;
};

/// For an asynchronous rank: the sources of its workers wait if the rank must wait, and observers share trained
/// batches.
class OwnPace final : public Pace {
 public:
  static Result<std::unique_ptr<Pace>> Create(JobSession& session, TrainingRun& run, PauseGate& gate);
  Status AddTo(int index, Dataset& dataset, WorkerParts* parts) override;
  std::unique_ptr<BatchSource> SourceOf(int worker, BatchSource& source) override;
  void StartPass() override;
  void AskForPause(bool /*is_stop*/) override { pace_->Call(); }
  void ReportFailure() override { pace_->Call(); }
  void StopReading() override {}
  Result<bool> HaveAllEnded() override;
  Result<Standing> StandStill(bool has_failed) override;
  void LookForPause() override {
    if (pace_->is_due()) gate_->Ask();
  }

 private:
  class PacedWorker;
  class PacedSource;

  OwnPace(JobSession& session, TrainingRun& run, PauseGate& gate);
  /// Before a worker takes a batch, after it was trained, and when its source has no more.
  Status BeforeBatch(int worker, const std::stop_token& stop);
  Status AfterBatch(int worker, int64_t examples);
  Status AfterLastBatch(int worker, const std::stop_token& stop);
  /// Whether rows are to be asked for a batch ahead.
  bool LooksAhead(int worker) const;
  /// Asks for the rows of the batch after the one that a worker is about to train.
  Status FetchRows(int worker, const SlotBatch& next, const std::stop_token& stop);
  void TakeOverFromOthers(int64_t batches, int64_t examples);
  /// Calls a meeting where checkpoint.every_steps or eval.every_steps asks for one.
  void LookAtSteps();

  JobSession* session_;
  TrainingRun* run_;
  PauseGate* gate_;
  RankGroup* ranks_;
  const int64_t staleness_;  ///< batches that a rank may be ahead; -1: any number
  std::unique_ptr<DenseExchange> dense_;
  std::unique_ptr<RankPace> pace_;
  std::vector<std::unique_ptr<PacedWorker>> workers_;
  std::atomic<int64_t> met_at_step_{0};
};

/// Runs after each batch of a worker of an asynchronous rank, and holds the rows that are fetched for the worker.
class OwnPace::PacedWorker final : public BatchObserver {
 public:
  PacedWorker(OwnPace& pace, int worker, std::unique_ptr<UpcomingRows> upcoming)
      : pace_(&pace), worker_(worker), upcoming_(std::move(upcoming)) {}
  Status OnBatch(const TrainedBatch& trained) override { return pace_->AfterBatch(worker_, trained.batch.rows()); }
  UpcomingRows& upcoming() const { return *upcoming_; }

 private:
  OwnPace* pace_;
  const int worker_;
  std::unique_ptr<UpcomingRows> upcoming_;
};

/// What it does before them. It takes a batch more than it gives, so that the rows of that one are on their way while
/// the other is trained.
class OwnPace::PacedSource final : public BatchSource {
 public:
  PacedSource(OwnPace& pace, int worker, BatchSource& source) : pace_(&pace), worker_(worker), source_(&source) {}
  Result<BatchPtr> Next(std::stop_token stop) override {
    MR_TRY(pace_->BeforeBatch(worker_, stop));
    Result<BatchPtr> batch = next_.has_value() ? *std::exchange(next_, std::nullopt) : source_->Next(stop);
    if (batch.ok() && *batch == nullptr) MR_TRY(pace_->AfterLastBatch(worker_, stop));
    if (!batch.ok() || *batch == nullptr) {
      if (worker_ == 0) pace_->pace_->EndTurn();
      return batch;
    }
    if (!pace_->LooksAhead(worker_)) return batch;
    next_ = source_->Next(stop);
    if (next_->ok() && **next_ != nullptr) MR_TRY(pace_->FetchRows(worker_, ***next_, stop));
    return batch;
  }

 private:
  OwnPace* pace_;
  const int worker_;
  BatchSource* source_;
  std::optional<Result<BatchPtr>> next_;
};

OwnPace::OwnPace(JobSession& session, TrainingRun& run, PauseGate& gate)
    : session_(&session),
      run_(&run),
      gate_(&gate),
      ranks_(&session.ranks()),
      staleness_(session.job().desc().dist().update() == DistDesc::SSP && !session.job().desc().infer()
                     ? session.job().desc().dist().staleness()
                     : -1) {}

Result<std::unique_ptr<Pace>> OwnPace::Create(JobSession& session, TrainingRun& run, PauseGate& gate) {
  std::unique_ptr<OwnPace> pace(new OwnPace(session, run, gate));
  const CompiledJob& job = session.job();
  RankGroup& ranks = session.ranks();
  DenseExchange::Options options;
  const bool are_two = ranks.trainers() <= 2;
  options.every = kDenseEvery;
  options.parameters_every = are_two ? kParametersEveryOfTwo : kParametersEvery;
  if (job.geo_steps() > 0) {
    options.every = std::min(kDenseEvery, job.geo_steps());
    // What many ranks moved adds up too far when it goes more often.
    options.parameters_every = are_two ? job.geo_steps() : std::max(kParametersEvery, job.geo_steps() / 2);
  }
  options.rest_every = kRestEvery;
  options.wire = job.wire_float();
  options.counters = CountersOf(job.model().main);
  MR_ASSIGN(pace->dense_, DenseExchange::Create(job.step(), session.root(), ranks, options));
  OwnPace* const at = pace.get();
  RankPace::Events events;
  events.on_due = [at] { at->gate_->Ask(); };
  events.on_others = [at](int64_t batches, int64_t examples) { at->TakeOverFromOthers(batches, examples); };
  pace->pace_ = std::make_unique<RankPace>(
      ranks.calls(), at->staleness_ >= 0 ? RankPace::Tell::kEveryBatch : RankPace::Tell::kNowAndThen,
      std::move(events));
  for (int i = 0; i < job.workers(); ++i) {
    MR_ASSIGN(std::unique_ptr<UpcomingRows> upcoming, UpcomingRows::Create(job.step(), job.schema(), session.root()));
    pace->workers_.push_back(std::make_unique<PacedWorker>(*at, i, std::move(upcoming)));
  }
  return std::unique_ptr<Pace>(std::move(pace));
}

Status OwnPace::AddTo(int index, Dataset& /*dataset*/, WorkerParts* parts) {
  for (WorkerFrame& frame : parts->frames) frame.observers.push_back(workers_[static_cast<size_t>(index)].get());
  return Status::Ok();
}

std::unique_ptr<BatchSource> OwnPace::SourceOf(int worker, BatchSource& source) {
  return std::make_unique<PacedSource>(*this, worker, source);
}

void OwnPace::StartPass() {
  const int64_t step = run_->state().step;
  met_at_step_ = step;
  // One that serves has no batches, and a turn of none.
  const int64_t ranks = ranks_->trainers();
  const bool takes_turns = ranks > 1 && step < kInTurns && !session_->job().desc().infer();
  pace_->StartPass(run_->state().epoch, takes_turns ? (kInTurns - step + ranks - 1) / ranks : 0);
  dense_->Start();
}

Status OwnPace::BeforeBatch(int worker, const std::stop_token& stop) {
  if (pace_->takes_turns()) {
    if (worker != 0) return pace_->WaitForEndOfTurns(stop);
    const bool goes_on = pace_->batches() > 0;
    MR_TRY(pace_->WaitForTurn(stop));
    if (stop.stop_requested() || (goes_on && pace_->takes_turns())) return Status::Ok();  // the source tells of a stop
    // Each turn sees the parameters of the turns before it, and after the last turn of all. The gate keeps evaluations
    // and checkpoints out while parameters move.
    gate_->Enter(worker);
    Status exchanged = stop.stop_requested() ? Status::Ok() : dense_->ExchangeNow();
    gate_->Leave(worker);
    return exchanged;
  }
  return staleness_ >= 0 ? pace_->WaitForOthers(staleness_, stop) : Status::Ok();
}

Status OwnPace::AfterBatch(int worker, int64_t examples) {
  if (worker == 0 && pace_->EndsTurn()) {
    MR_TRY(ranks_->tables().Flush());
    MR_TRY(dense_->ExchangeNow());
  } else if (worker == 0) {
    MR_TRY(dense_->Step());
  }
  MR_TRY(pace_->Trained(examples));
  LookAtSteps();
  return Status::Ok();
}

Status OwnPace::AfterLastBatch(int worker, const std::stop_token& stop) {
  gate_->Enter(worker);
  // Others go on, perhaps for long.
  Status shared = stop.stop_requested() ? Status::Ok() : ranks_->tables().Flush();
  if (shared.ok() && !stop.stop_requested() && worker == 0 && pace_->takes_turns()) shared = dense_->ExchangeNow();
  gate_->Leave(worker);
  return shared;
}

bool OwnPace::LooksAhead(int worker) const {
  // In turns a rank sees all that those before it have made of the rows, and with SSP what it was promised.
  return MayFetch(*session_) && staleness_ < 0 && !pace_->takes_turns() &&
         !workers_[static_cast<size_t>(worker)]->upcoming().empty();
}

Status OwnPace::FetchRows(int worker, const SlotBatch& next, const std::stop_token& stop) {
  // A fetch makes rows, where they are not there yet: not while others save them.
  gate_->Enter(worker);
  Status fetched = stop.stop_requested() ? Status::Ok() : workers_[static_cast<size_t>(worker)]->upcoming().Fetch(next);
  gate_->Leave(worker);
  return fetched;
}

void OwnPace::TakeOverFromOthers(int64_t batches, int64_t examples) {
  SharedProgress& progress = run_->progress();
  progress.steps_started.fetch_add(batches, std::memory_order_relaxed);
  progress.steps_done.fetch_add(batches, std::memory_order_relaxed);
  progress.examples.fetch_add(examples, std::memory_order_relaxed);
  progress.pass_examples.fetch_add(examples, std::memory_order_relaxed);
  LookAtSteps();
}

void OwnPace::LookAtSteps() {
  if (!ranks_->leads()) return;
  const TrainerDesc& desc = session_->job().desc();
  const int64_t done = run_->progress().steps_done.load(std::memory_order_relaxed);
  const int64_t met = met_at_step_.load(std::memory_order_relaxed);
  const bool saves = run_->SavesCheckpoints() && Crossed(desc.checkpoint().every_steps(), met, done);
  const bool measures = session_->has_evaluations() && Crossed(desc.eval().every_steps(), met, done);
  if (saves || measures) pace_->Call();
}

Result<bool> OwnPace::HaveAllEnded() {
  MR_TRY(pace_->End());
  return false;
}

Result<Pace::Standing> OwnPace::StandStill(bool has_failed) {
  // A push that failed at its owner is this rank's failure, which all have to hear of.
  Status flushed = ranks_->tables().Flush();
  if (flushed.code() == StatusCode::kUnavailable) return flushed;
  int64_t failed = has_failed ? 1 : 0;
  // Batches that other ranks report during the meeting must not call another one.
  met_at_step_ = std::numeric_limits<int64_t>::max();
  MR_ASSIGN(const bool have_all_ended, pace_->Meet({&failed, 1}));
  MR_TRY(ranks_->Agree(flushed));
  MR_TRY(dense_->Settle());
  met_at_step_ = run_->progress().steps_done.load();
  return Standing{have_all_ended, failed > 0};
}

Result<std::unique_ptr<RankStep>> MakeStep(JobSession& session, const Frame& frame) {
  if (!frame.states().empty()) {
    return InvalidConfig("dist: not supported yet: operator " + frame.states()[0].name +
                         " keeps a state from batch to batch, and each rank would have its own");
  }
  const CompiledJob& job = session.job();
  return RankStep::Create(*job.pipeline(), frame, session.root(), session.frame_options(0, false), session.ranks(),
                          job.rank_micro_batches());
}

Status StepPace::AddTo(int /*index*/, Dataset& dataset, WorkerParts* parts) {
  const CompiledJob& job = session_->job();
  MR_ASSIGN(step_, MakeStep(*session_, *parts->frames[0].frame));
  parts->ranks = {step_.get(), &dataset, &wants_pause_, stop_reading_.get_token(), session_->spans(), {}};
  MR_ASSIGN(upcoming_, UpcomingRows::Create(*job.pipeline()->step, job.schema(), session_->root()));
  if (MayFetch(*session_) && !upcoming_->empty()) {
    parts->ranks.fetch = [this](const SlotBatch& batch) { return upcoming_->Fetch(batch); };
  }
  return Status::Ok();
}

}  // namespace

Status CheckStep(JobSession& session, const Frame& frame) { return MakeStep(session, frame).status(); }

Result<std::unique_ptr<Pace>> MakePace(JobSession& session, TrainingRun& run, PauseGate& gate) {
  const CompiledJob& job = session.job();
  if (!job.is_dist()) return std::unique_ptr<Pace>(std::make_unique<SoloPace>(session, run, gate));
  if (job.trains_in_step()) return std::unique_ptr<Pace>(std::make_unique<StepPace>(session, run));
  return OwnPace::Create(session, run, gate);
}

}  // namespace millrace
