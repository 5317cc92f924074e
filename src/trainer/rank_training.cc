#include "trainer/rank_training.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "program/counters.h"

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

}  // namespace

/// What a rank that trains at its own pace does behind the batches of a worker, and the rows that it fetches for it.
class RankTraining::PacedWorker final : public BatchObserver {
 public:
  PacedWorker(RankTraining& ranks, int worker, std::unique_ptr<UpcomingRows> upcoming)
      : ranks_(&ranks), worker_(worker), upcoming_(std::move(upcoming)) {}
  Status OnBatch(const TrainedBatch& trained) override { return ranks_->AfterBatch(worker_, trained.batch.rows()); }
  UpcomingRows& upcoming() const { return *upcoming_; }

 private:
  RankTraining* ranks_;
  const int worker_;
  std::unique_ptr<UpcomingRows> upcoming_;
};

/// What it does before them. It takes a batch more than it gives, so that the rows of that one are on their way while
/// the other is trained.
class RankTraining::PacedSource final : public BatchSource {
 public:
  PacedSource(RankTraining& ranks, int worker, BatchSource& source)
      : ranks_(&ranks), worker_(worker), source_(&source) {}
  Result<BatchPtr> Next(std::stop_token stop) override {
    MR_TRY(ranks_->BeforeBatch(worker_, stop));
    Result<BatchPtr> batch = next_.has_value() ? *std::exchange(next_, std::nullopt) : source_->Next(stop);
    if (batch.ok() && *batch == nullptr) MR_TRY(ranks_->AfterLastBatch(worker_, stop));
    if (!batch.ok() || *batch == nullptr) {
      if (worker_ == 0) ranks_->pace_->EndTurn();
      return batch;
    }
    if (!ranks_->LooksAhead(worker_)) return batch;
    next_ = source_->Next(stop);
    if (next_->ok() && **next_ != nullptr) MR_TRY(ranks_->FetchRows(worker_, ***next_, stop));
    return batch;
  }

 private:
  RankTraining* ranks_;
  const int worker_;
  BatchSource* source_;
  std::optional<Result<BatchPtr>> next_;
};

RankTraining::~RankTraining() = default;

RankTraining::RankTraining(JobSession& session, TrainingRun& run, PauseGate& gate)
    : session_(&session),
      run_(&run),
      gate_(&gate),
      ranks_(session.ranks()),
      in_step_(session.job().trains_in_step()),
      staleness_(session.job().desc().dist().update() == DistDesc::SSP && !session.job().desc().infer()
                     ? session.job().desc().dist().staleness()
                     : -1) {}

Result<std::unique_ptr<RankTraining>> RankTraining::Create(JobSession& session, TrainingRun& run, PauseGate& gate) {
  std::unique_ptr<RankTraining> training(new RankTraining(session, run, gate));
  if (training->in_step_) return training;
  const CompiledJob& job = session.job();
  DenseExchange::Options options;
  const bool are_two = session.ranks()->trainers() <= 2;
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
  MR_ASSIGN(training->dense_, DenseExchange::Create(job.step(), session.root(), *session.ranks(), options));
  RankTraining* const at = training.get();
  RankPace::Events events;
  events.on_due = [at] { at->gate_->Ask(); };
  events.on_others = [at](int64_t batches, int64_t examples) { at->TakeOverFromOthers(batches, examples); };
  training->pace_ = std::make_unique<RankPace>(
      session.ranks()->calls(), at->staleness_ >= 0 ? RankPace::Tell::kEveryBatch : RankPace::Tell::kNowAndThen,
      std::move(events));
  for (int i = 0; i < job.workers(); ++i) {
    MR_ASSIGN(std::unique_ptr<UpcomingRows> upcoming, UpcomingRows::Create(job.step(), job.schema(), session.root()));
    training->workers_.push_back(std::make_unique<PacedWorker>(*at, i, std::move(upcoming)));
  }
  return training;
}

int RankTraining::sources() const {
  const CompiledJob& job = session_->job();
  return in_step_ ? ranks_->ShareOf(job.rank_micro_batches()).second : job.workers();
}

Status RankTraining::AddStep(const Frame& frame, Dataset& dataset, WorkerParts* parts) {
  if (!frame.states().empty()) {
    return InvalidConfig("dist: not supported yet: operator " + frame.states()[0].name +
                         " keeps a state from batch to batch, and each rank would have its own");
  }
  MR_ASSIGN(step_, RankStep::Create(*session_->job().pipeline(), frame, session_->root(),
                                    session_->frame_options(0, false), *ranks_, session_->job().rank_micro_batches()));
  parts->ranks = {step_.get(), &dataset, &wants_pause_, stop_reading_.get_token(), session_->spans(), {}};
  MR_ASSIGN(upcoming_,
            UpcomingRows::Create(*session_->job().pipeline()->step, session_->job().schema(), session_->root()));
  if (MayFetch() && !upcoming_->empty()) {
    parts->ranks.fetch = [this](const SlotBatch& batch) { return upcoming_->Fetch(batch); };
  }
  return Status::Ok();
}

std::unique_ptr<BatchSource> RankTraining::SourceOf(int worker, BatchSource& source) {
  return in_step_ ? nullptr : std::make_unique<PacedSource>(*this, worker, source);
}

BatchObserver* RankTraining::ObserverOf(int worker) {
  return in_step_ ? nullptr : workers_[static_cast<size_t>(worker)].get();
}

void RankTraining::StartPass() {
  if (in_step_) return;
  const int64_t step = run_->state().step;
  met_at_step_ = step;
  // One that serves has no batches, and a turn of none.
  const int64_t ranks = ranks_->trainers();
  const bool takes_turns = ranks > 1 && step < kInTurns && !session_->job().desc().infer();
  pace_->StartPass(run_->state().epoch, takes_turns ? (kInTurns - step + ranks - 1) / ranks : 0);
  dense_->Start();
}

Status RankTraining::BeforeBatch(int worker, const std::stop_token& stop) {
  if (pace_->takes_turns()) {
    if (worker != 0) return pace_->WaitForEndOfTurns(stop);
    const bool goes_on = pace_->batches() > 0;
    MR_TRY(pace_->WaitForTurn(stop));
    if (stop.stop_requested() || (goes_on && pace_->takes_turns())) return Status::Ok();  // the source tells of a stop
    // With what those before have made of the parameters, and, behind all turns, with what those after have. Nobody
    // saves or measures parameters while they move.
    gate_->Enter(worker);
    Status exchanged = stop.stop_requested() ? Status::Ok() : dense_->ExchangeNow();
    gate_->Leave(worker);
    return exchanged;
  }
  return staleness_ >= 0 ? pace_->WaitForOthers(staleness_, stop) : Status::Ok();
}

Status RankTraining::AfterBatch(int worker, int64_t examples) {
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

Status RankTraining::AfterLastBatch(int worker, const std::stop_token& stop) {
  gate_->Enter(worker);
  // Others go on, perhaps for long.
  Status shared = stop.stop_requested() ? Status::Ok() : ranks_->tables().Flush();
  if (shared.ok() && !stop.stop_requested() && worker == 0 && pace_->takes_turns()) shared = dense_->ExchangeNow();
  gate_->Leave(worker);
  return shared;
}

bool RankTraining::MayFetch() const { return ranks_->size() > 1 && !session_->job().desc().infer(); }

bool RankTraining::LooksAhead(int worker) const {
  // In turns a rank sees all that those before it have made of the rows, and with SSP what it was promised.
  return MayFetch() && staleness_ < 0 && !pace_->takes_turns() &&
         !workers_[static_cast<size_t>(worker)]->upcoming().empty();
}

Status RankTraining::FetchRows(int worker, const SlotBatch& next, const std::stop_token& stop) {
  // A fetch makes rows, where they are not there yet: not while others save them.
  gate_->Enter(worker);
  Status fetched = stop.stop_requested() ? Status::Ok() : workers_[static_cast<size_t>(worker)]->upcoming().Fetch(next);
  gate_->Leave(worker);
  return fetched;
}

void RankTraining::TakeOverFromOthers(int64_t batches, int64_t examples) {
  SharedProgress& progress = run_->progress();
  progress.steps_started.fetch_add(batches, std::memory_order_relaxed);
  progress.steps_done.fetch_add(batches, std::memory_order_relaxed);
  progress.examples.fetch_add(examples, std::memory_order_relaxed);
  progress.pass_examples.fetch_add(examples, std::memory_order_relaxed);
  LookAtSteps();
}

void RankTraining::LookAtSteps() {
  if (!ranks_->leads()) return;
  const TrainerDesc& desc = session_->job().desc();
  const int64_t done = run_->progress().steps_done.load(std::memory_order_relaxed);
  const int64_t met = met_at_step_.load(std::memory_order_relaxed);
  const bool saves = run_->SavesCheckpoints() && Crossed(desc.checkpoint().every_steps(), met, done);
  const bool measures = session_->has_evaluations() && Crossed(desc.eval().every_steps(), met, done);
  if (saves || measures) pace_->Call();
}

void RankTraining::AskForPause(bool is_stop) {
  if (!in_step_) return pace_->Call();
  wants_pause_ = true;
  if (is_stop) stop_reading_.request_stop();
}

Result<bool> RankTraining::HaveAllEnded() {
  if (in_step_) return true;
  MR_TRY(pace_->End());
  return false;
}

Result<RankTraining::Standing> RankTraining::StandStill(bool has_failed) {
  if (in_step_) return Standing{};
  // A push that failed at its owner is this rank's failure, which all have to hear of.
  Status flushed = ranks_->tables().Flush();
  if (flushed.code() == StatusCode::kUnavailable) return flushed;
  int64_t failed = has_failed ? 1 : 0;
  // What others have trained, which is told meanwhile, calls no further meeting.
  met_at_step_ = std::numeric_limits<int64_t>::max();
  MR_ASSIGN(const bool have_all_ended, pace_->Meet({&failed, 1}));
  MR_TRY(ranks_->Agree(flushed));
  MR_TRY(dense_->Settle());
  met_at_step_ = run_->progress().steps_done.load();
  return Standing{have_all_ended, failed > 0};
}

void RankTraining::LookForPause() {
  if (!in_step_ && pace_->is_due()) gate_->Ask();
}

Status RankTraining::Gather(const RankProgress& mine, RunState* state, bool* is_sound, bool* is_asked_to_stop) {
  std::array<int64_t, 2> sums = {*is_sound ? 0 : 1, *is_asked_to_stop ? 1 : 0};
  MR_TRY(ranks_->communicator().SumOverRanks(sums));
  *is_sound = sums[0] == 0;
  *is_asked_to_stop = sums[1] > 0;
  std::vector<std::string> all;
  MR_TRY(ranks_->ToLeader(ranks_->leads() ? "" : mine.ToBytes(), &all));
  if (!ranks_->leads()) return Status::Ok();
  const MetricSet& metrics = session_->job().metrics();
  others_ = {};
  others_.totals = metrics.NewTotals();
  for (size_t r = 1; r < all.size(); ++r) {
    MR_ASSIGN(const RankProgress theirs, RankProgress::FromBytes(all[r], metrics));
    others_.Add(theirs);
  }
  state->trained.Merge(others_.trained);
  MetricSet::Add(others_.totals, &state->metric_totals);
  for (const auto& [kind, count] : others_.bad_lines) state->bad_lines[kind] += count;
  for (const auto& [kind, count] : earlier_bad_lines_) state->bad_lines[kind] += count;
  return Status::Ok();
}

Status RankTraining::SumLoads(PassStats* load, int64_t* rows) const {
  MR_TRY(ranks_->communicator().SumOverRanks({rows, 1}));
  RankProgress mine;
  mine.totals = session_->job().metrics().NewTotals();
  mine.data = *load;
  std::vector<std::string> all;
  MR_TRY(ranks_->ToLeader(ranks_->leads() ? "" : mine.ToBytes(), &all));
  for (size_t r = 1; ranks_->leads() && r < all.size(); ++r) {
    MR_ASSIGN(const RankProgress theirs, RankProgress::FromBytes(all[r], session_->job().metrics()));
    AddPassStats(theirs.data, load);
  }
  return Status::Ok();
}

}  // namespace millrace
