#include "trainer/evaluator.h"

#include <omp.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "core/caught.h"
#include "core/wire.h"
#include "device_worker/batch_runner.h"
#include "report/rank_progress.h"

namespace millrace {

Result<std::unique_ptr<Evaluator>> Evaluator::Create(JobSession& session) {
  return Create(session, session.eval_datasets(), nullptr);
}

Result<std::unique_ptr<Evaluator>> Evaluator::Create(JobSession& session, Dataset& dataset) {
  return Create(session, {&dataset}, RankGroup::Solo());
}

Result<std::unique_ptr<Evaluator>> Evaluator::Create(JobSession& session, const std::vector<Dataset*>& datasets,
                                                     std::unique_ptr<RankGroup> own_ranks) {
  const CompiledJob& job = session.job();
  std::unique_ptr<Evaluator> evaluator(new Evaluator(session, std::move(own_ranks)));
  for (Dataset* dataset : datasets) {
    evaluator->inputs_.push_back({dataset, dynamic_cast<InMemoryControl*>(dataset), false, {}});
  }
  if (evaluator->ranks_->serves()) return evaluator;
  MR_ASSIGN(const Executable* const forward, job.eval());
  AccumulatorOptions options;
  options.label_monitor = &session.label_monitor();
  options.examples = &evaluator->examples_;
  for (int i = 0; i < job.workers(); ++i) {
    Reader reader;
    MR_ASSIGN(reader.frame, Frame::Create(*forward, &job.schema(), session.root(), session.frame_options(i, true)));
    MR_ASSIGN(reader.metrics, MetricAccumulator::Create(job.eval_metrics(), *reader.frame, options));
    MR_ASSIGN(reader.watch, SlotWatch::Create(*forward, job.desc().data_desc(), job.schema(), session.root(), false));
    evaluator->readers_.push_back(std::move(reader));
  }
  return evaluator;
}

Evaluator::Evaluator(JobSession& session, std::unique_ptr<RankGroup> own_ranks)
    : session_(&session),
      job_(&session.job()),
      own_ranks_(std::move(own_ranks)),
      ranks_(own_ranks_ != nullptr ? own_ranks_.get() : &session.ranks()) {}

Evaluator::~Evaluator() {
  for (Input& input : inputs_) {
    if (input.loaded) input.memory->ReleaseMemory();
  }
}

Status Evaluator::RunReader(Reader& reader, BatchSource& source, const std::stop_token& stop) {
  BatchRunner runner(*reader.frame, reader.metrics.get(), nullptr,
                     {&input_->dataset->files(), job_->lines_are_piped()});
  while (true) {
    MR_ASSIGN(const BatchPtr batch, runner.Take(source, stop));
    if (batch == nullptr) return reader.watch.AddTo(&reader.shares);
    // What the number of a step sets off is of training: every batch is the first.
    MR_TRY(runner.Run(*batch, 0, stop));
    MR_TRY(runner.Measure());
    MR_TRY(reader.watch.Look(*batch));
    reader.examples += batch->rows();
  }
}

void Evaluator::TakeSums(Share* share) {
  Sums sums;
  sums.totals = job_->eval_metrics().NewTotals();
  for (Reader& reader : readers_) {
    reader.metrics->AddTo(sums.totals);
    reader.metrics->Clear();
    sums.examples += std::exchange(reader.examples, 0);
  }
  if (sums.examples > 0) share->sums.push_back(std::move(sums));
}

Status Evaluator::RunReaders(const std::stop_token& stop, Share* share) {
  session_->RenewPackedWeights();
  examples_.Take(0);
  for (Reader& reader : readers_) {
    reader.metrics->Clear();
    reader.examples = 0;
    reader.shares.clear();
    reader.status = Status::Ok();
  }
  Dataset& dataset = *input_->dataset;
  const int streams = this->streams();
  std::stop_source failed;
  Status first;
  {
    const std::stop_callback forward(stop, [&failed] { failed.request_stop(); });
    const auto run = [&](size_t i) -> Status {
      omp_set_num_threads(1);
      if (streams == 0) return RunReader(readers_[i], dataset.source(static_cast<int>(i)), failed.get_token());
      for (int stream = 0; stream < streams; ++stream) {
        MR_TRY(RunReader(readers_[i], dataset.source(stream), failed.get_token()));
        TakeSums(share);
      }
      return Status::Ok();
    };
    // Behind what the threads use: they are joined where this ends.
    std::vector<std::jthread> threads;
    first = Caught("an evaluation", [&] {
      for (size_t i = 0; i < (streams > 0 ? 1 : readers_.size()); ++i) {
        threads.emplace_back([this, i, &run, &failed] {
          readers_[i].status = Caught("an evaluation", [&] { return run(i); });
          if (!readers_[i].status.ok()) failed.request_stop();
        });
      }
      return Status::Ok();
    });
    if (!first.ok()) failed.request_stop();
  }
  for (Reader& reader : readers_) {
    const bool better = first.ok() || first.code() == StatusCode::kCancelled;
    if (better && !reader.status.ok()) first = reader.status;
  }
  if (first.ok() && streams == 0) TakeSums(share);
  if (!share->sums.empty()) {
    share->sums[0].totals.examples = examples_.Take(job_->eval_metrics().exact_metrics());
  }
  return first;
}

Status Evaluator::Measure(const std::stop_token& stop, Share* share) {
  Dataset& dataset = *input_->dataset;
  if (input_->memory != nullptr && !input_->memory->IsLoaded()) {
    MR_ASSIGN(input_->loaded_stats, input_->memory->LoadIntoMemory(stop));
    input_->loaded = true;
  }
  share->load = input_->loaded_stats;
  PassOptions options;
  options.workers = streams() > 0 ? streams() : job_->workers();
  options.seed = job_->desc().seed();
  options.ordered = job_->desc().update_mode() == TrainerDesc::SERIAL;
  MR_TRY(dataset.BeginPass(options));
  Status measured = RunReaders(stop, share);
  Result<PassStats> stats = dataset.EndPass();
  MR_TRY(std::move(measured));
  MR_ASSIGN(share->data, std::move(stats));
  for (Reader& reader : readers_) {
    for (const auto& [slot, seen] : reader.shares) share->data.names.shares[slot] += seen;
  }
  return Status::Ok();
}

Status Evaluator::MeasureTogether(const std::stop_token& stop, Share* share, std::vector<std::string>* others) {
  GroupCancellation& end = ranks_->cancellation();
  const std::stop_token given_up = end.Begin();
  std::stop_source ended;
  std::atomic<bool> is_asked{false};
  std::string bytes;
  Status mine;
  {
    const std::stop_callback on_stop(stop, [&] {
      is_asked = true;
      ended.request_stop();
      end.GiveUp();
    });
    const std::stop_callback on_end(given_up, [&ended] { ended.request_stop(); });
    mine = Caught("an evaluation", [&]() -> Status {
      if (!ranks_->serves()) MR_TRY(Measure(ended.get_token(), share));
      if (!ranks_->leads()) bytes = ToBytes(*share);
      return Status::Ok();
    });
    if (!mine.ok()) end.GiveUp();
    // One that has measured its share still ends the others when it is asked to stop.
    MR_TRY(ranks_->communicator().Barrier());
  }
  // Who was ended leaves it to the one that gave up to say why.
  const bool was_ended = mine.code() == StatusCode::kCancelled && ended.stop_requested();
  if (was_ended) mine = Status::Ok();
  std::array<int64_t, 2> sums = {is_asked ? 1 : 0, was_ended ? 1 : 0};
  MR_TRY(ranks_->communicator().SumOverRanks(sums));
  MR_TRY(ranks_->Agree(mine));
  if (sums[0] > 0) return Cancelled("a rank was asked to stop during an evaluation");
  if (sums[1] > 0) return Internal("an evaluation was ended by nobody");
  return ranks_->ToLeader(std::move(bytes), others);
}

std::string Evaluator::ToBytes(const Share& share) {
  std::string bytes;
  WireWriter out(&bytes);
  PutPassStats(share.load, &out);
  PutPassStats(share.data, &out);
  out.Put(static_cast<uint64_t>(share.sums.size()));
  for (const Sums& sums : share.sums) {
    PutTotals(sums.totals, &out);
    out.Put(sums.examples);
  }
  return bytes;
}

Result<Evaluator::Share> Evaluator::FromBytes(std::string_view bytes) const {
  Share share;
  WireReader in(bytes);
  GetPassStats(&in, &share.load);
  GetPassStats(&in, &share.data);
  const auto count = in.Get<uint64_t>();
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    Sums& sums = share.sums.emplace_back();
    std::optional<MetricTotals> totals = GetTotals(&in, job_->eval_metrics());
    if (!totals.has_value()) return Internal("another rank has measured other metrics");
    sums.totals = *std::move(totals);
    sums.examples = in.Get<int64_t>();
  }
  if (!in.ok()) return Internal("what another rank has measured ends too soon");
  return share;
}

Result<EvalReport> Evaluator::Run(const RunState& state, std::stop_token stop) {
  EvalReport first;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    input_ = &inputs_[i];
    MR_ASSIGN(EvalReport report, MeasureInput(state, stop));
    (i == 0 ? first : first.others.emplace_back()) = std::move(report);
  }
  return first;
}

Result<EvalReport> Evaluator::MeasureInput(const RunState& state, const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Share> shares(1);
  std::vector<std::string> others;
  MR_TRY(MeasureTogether(stop, shares.data(), &others));
  Result<EvalReport> report = EvalReport();
  if (ranks_->leads()) report = ReportOf(std::move(shares), others, state);
  // The others would go on to the next set.
  MR_TRY(ranks_->Agree(report.status()));
  report->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

Result<EvalReport> Evaluator::ReportOf(std::vector<Share> shares, const std::vector<std::string>& others,
                                       const RunState& state) {
  for (size_t r = 1; r < others.size(); ++r) {
    MR_ASSIGN(Share theirs, FromBytes(others[r]).Context("rank " + std::to_string(r)));
    shares.push_back(std::move(theirs));
  }
  EvalReport report;
  report.step = state.step;
  report.epoch = state.epoch;
  report.trained_examples = state.examples;
  PassStats load;
  PassStats data;
  Sums all;
  for (Share& share : shares) {
    AddPassStats(share.load, &load);
    AddPassStats(share.data, &data);
    for (Sums& sums : share.sums) {
      if (all.examples == 0) {
        all = std::move(sums);
        continue;
      }
      MetricSet::Add(sums.totals, &all.totals);
      all.examples += sums.examples;
    }
  }
  const bool is_of_job = !session_->eval_datasets().empty() && inputs_[0].dataset == session_->eval_datasets()[0];
  const auto number = static_cast<size_t>(input_ - inputs_.data());
  if (is_of_job) report.set = job_->config().eval_sets[number].name;
  if (all.examples == 0) {
    const std::string what = report.set.empty() ? "evaluate" : "evaluate in set \"" + report.set + "\"";
    const int in_job = is_of_job ? job_->config().eval_sets[number].number : -1;
    const Status nothing =
        NothingTo(what, load.files > 0 ? load : data, job_->desc().data_desc(), input_->dataset->files());
    const bool is_since = in_job >= 0 && job_->desc().eval().set(in_job).has_since();
    return is_since ? BadData(nothing.message() + "\n  " + NoRowSince(job_->desc().eval().set(in_job))) : nothing;
  }
  report.examples = all.examples;
  report.shares = std::move(data.names.shares);
  report.data = input_->memory != nullptr ? std::move(load) : std::move(data);
  for (const FeatureStates::ColumnTime& time : session_->trained_times()) {
    report.data.names.trained_zones[time.column()][time.zone()] = {.text = time.zone(), .place = time.place()};
  }
  const SlotShares* const before = session_->SlotSharesOf(report.set);
  // In the first epoch many ids still wait to be trained.
  if (before != nullptr || state.epoch > 0) {
    report.data.names.shares = report.shares;
    if (before != nullptr) report.data.names.trained_shares = *before;
  }
  report.loss = job_->eval_metrics().Loss(all.totals);
  const size_t shown = job_->metrics().names().size();
  report.metrics = job_->eval_metrics().Compute(all.totals);
  report.metrics.resize(shown);
  report.non_finite_rows = job_->eval_metrics().NonFiniteRows(all.totals);
  report.remarks = job_->eval_metrics().Remarks(report.metrics, all.totals);
  for (size_t i = 0; is_of_job && i < job_->calibrations().size(); ++i) {
    const CalibrationPlan& plan = job_->calibrations()[i];
    if (plan.set != number) continue;
    const std::span<const double> sums = job_->eval_metrics().Sums(shown + i, all.totals);
    const auto examples = job_->eval_metrics().Examples(shown + i, all.totals);
    report.calibrations.push_back(Calibrate(plan, sums, examples, report.examples));
  }
  return report;
}

}  // namespace millrace
