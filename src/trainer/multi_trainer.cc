#include "trainer/multi_trainer.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "checkpoint/operator_states.h"
#include "core/caught.h"
#include "core/elapsed.h"
#include "datafeed/bad_lines.h"
#include "device_worker/sync_worker.h"
#include "report/rank_trace.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kTick{100};
/// A stop waits so long for the ends of batches before it comes within them.
constexpr std::chrono::milliseconds kPatience{500};

}  // namespace

Result<std::unique_ptr<Trainer>> MultiTrainer::Create(JobSession& session, TrainerHooks hooks) {
  MR_ASSIGN(std::unique_ptr<TrainingRun> run, TrainingRun::Create(session, std::move(hooks)));
  std::unique_ptr<MultiTrainer> trainer(new MultiTrainer(session, std::move(run)));
  MR_TRY(trainer->MakeWorkerSlots());
  return std::unique_ptr<Trainer>(std::move(trainer));
}

Status MultiTrainer::MakeWorkerSlots() {
  const int workers = job_->workers();
  for (const std::string& name : job_->desc().hogwild_param().stat_var_names()) {
    const Variable* shared = session_->root().Find(name);
    if (shared == nullptr || !shared->Is<Tensor>()) {
      return InvalidConfig("hogwild_param.stat_var_names: there is no persistable tensor \"" + name + "\"");
    }
    const DType type = shared->Get<Tensor>().dtype();
    if (type == DType::kInt64 || type == DType::kFloat32) continue;
    return InvalidConfig(
        "hogwild_param.stat_var_names: \"" + name + "\" is " + std::string(DTypeName(type)) +
        "; what workers have of their own is added up, which is done for int64 and float32: declare it "
        "as one of them, or leave it out");
  }
  const RankGroup& ranks = session_->ranks();
  const bool dumps = job_->desc().dump_fields_size() > 0 || (job_->desc().dump_param_size() > 0 && ranks.leads());
  if (dumps && !ranks.serves()) {
    MR_ASSIGN(dump_files_, DumpFiles::Create(job_->desc(), run_->is_resumed(), job_->is_dist() ? ranks.rank() : -1));
  }
  if (job_->desc().infer() || workers == 1) run_->progress().serialized_warmup_steps = 0;
  VLOG(3) << "worker thread num: " << workers << ", device worker: " << job_->desc().device_worker_name();
  const OpList& ops = job_->step().ops();
  for (size_t i = 0; i < ops.size(); ++i) VLOG(3) << "op[" << i << "]->Type(): " << ops[i].type();
  gate_ = std::make_unique<PauseGate>(workers);
  worker_slots_.resize(static_cast<size_t>(workers));
  const int frames = job_->has_sections() ? MicroBatchSchedule(ScheduleOptions()).scopes(job_->micro_batches()) : 1;
  for (int i = 0; i < workers; ++i) MR_TRY(MakeFrames(worker_slots_[static_cast<size_t>(i)], i, frames));
  if (job_->feeds_itself()) MR_TRY(FindReaders(*worker_slots_[0].frames[0].frame));
  MR_ASSIGN(pace_, MakePace(*session_, *run_, *gate_));
  const TrainerDesc& desc = job_->desc();
  std::vector<const Frame*> watched;
  for (const FrameContext& context : worker_slots_[0].frames) watched.push_back(context.frame.get());
  fetch_observer_ =
      std::make_unique<FetchObserver>(*job_, watched, all_metrics_, run_->progress(), run_->hooks().reporter);
  if (desc.debug() && job_->pipeline() == nullptr) profile_observer_ = std::make_unique<ProfileObserver>();
  if (!job_->exports().empty()) vocabulary_observer_ = std::make_unique<VocabularyObserver>(job_->exports());
  if (session_->fetch_handler() != nullptr) {
    handler_observer_ = std::make_unique<HandlerObserver>(*session_->fetch_handler(), watched);
  }
  for (int i = 0; i < workers; ++i) MR_TRY(MakeWorker(worker_slots_[static_cast<size_t>(i)], i));
  return Status::Ok();
}

Status MultiTrainer::FindReaders(Frame& frame) {
  MR_ASSIGN(readers_, ReaderDataset::Create(*session_, frame));
  MR_TRY(CheckSources(*job_, frame, run_.get()));
  run_->report().feeds_itself = true;
  return Status::Ok();
}

Status MultiTrainer::MakeFrames(WorkerSlot& slot, int index, int count) {
  slot.frames.resize(static_cast<size_t>(count));
  const SlotSchema* schema = job_->feeds_itself() ? nullptr : &job_->schema();
  for (FrameContext& context : slot.frames) {
    MR_ASSIGN(context.frame, Frame::Create(job_->step(), schema, session_->root(),
                                           session_->frame_options(index, job_->desc().infer())));
    AccumulatorOptions options;
    options.label_monitor = &session_->label_monitor();
    options.examples = job_->desc().infer() ? &examples_ : nullptr;
    options.has_windows = std::any_of(job_->fetches().begin(), job_->fetches().end(), [](const FetchItem& item) {
      return item.kind == FetchItem::Kind::kWindowMetric;
    });
    MR_ASSIGN(context.metrics, MetricAccumulator::Create(job_->metrics(), *context.frame, options));
    all_metrics_.push_back(context.metrics.get());
    MR_TRY(MakeObservers(context, index));
  }
  return Status::Ok();
}

Status MultiTrainer::MakeObservers(FrameContext& context, int index) {
  const TrainerDesc& desc = job_->desc();
  MR_ASSIGN(context.nan_check, NanCheck::Create(job_->step(), *context.frame, session_->nan_check_rule()));
  if (dump_files_ != nullptr) {
    MR_ASSIGN(context.dump, DumpObserver::Create(desc, job_->step(), *context.frame, PlaceOf(index), *dump_files_));
  }
  if (desc.output().trace() || (desc.debug() && index == 0)) context.frame->EnableProfile();
  if (desc.output().trace()) {
    context.trace =
        std::make_unique<BatchTrace>(index, desc.output().trace_first_batch(), desc.output().trace_batches(),
                                     job_->step().ops().size(), session_->spans());
  }
  return Status::Ok();
}

std::vector<BatchObserver*> MultiTrainer::ObserversOf(const FrameContext& context, int index) const {
  std::vector<BatchObserver*> observers = {context.nan_check.get(), context.dump.get(), context.trace.get()};
  if (index == 0 && session_->leads()) {
    observers.insert(observers.end(), {fetch_observer_.get(), handler_observer_.get(), profile_observer_.get()});
  }
  if (index == 0) observers.push_back(vocabulary_observer_.get());
  std::erase(observers, nullptr);
  return observers;
}

Status MultiTrainer::MakeWorker(WorkerSlot& slot, int index) {
  WorkerParts parts;
  parts.index = index;
  for (const FrameContext& context : slot.frames) {
    MetricAccumulator* metrics = job_->feeds_itself() ? nullptr : context.metrics.get();  // it has no batches
    parts.frames.push_back({context.frame.get(), metrics, ObserversOf(context, index)});
  }
  parts.reading = readers_.get();
  parts.gate = gate_.get();
  parts.progress = &run_->progress();
  parts.input = {&dataset().files(), job_->lines_are_piped()};
  const std::vector<int> cpus = UsableProcessors();
  // Ranks of one machine that a launcher let have all processors would meet on the first one.
  if (job_->desc().binding_cpu() && !cpus.empty()) parts.cpu = cpus[static_cast<size_t>(PlaceOf(index)) % cpus.size()];
  if (job_->has_sections()) MR_TRY(AddPipeline(slot, index, &parts));
  MR_TRY(pace_->AddTo(index, dataset(), &parts));
  if (job_->trains_in_step()) {
    slot.worker = MakeSyncWorker(std::move(parts));
    return Status::Ok();
  }
  const std::string& name = job_->desc().device_worker_name();
  MR_ASSIGN(const WorkerMaker* maker, job_->environment().workers.Get(name).Context("device_worker_name"));
  MR_ASSIGN(slot.worker, CaughtMaking("the device worker \"" + name + "\"", [&] {
              return Result<std::unique_ptr<DeviceWorker>>((*maker)(std::move(parts)));
            }));
  return Status::Ok();
}

MicroBatchSchedule::Options MultiTrainer::ScheduleOptions() const {
  const SectionWorkerParameter& section = job_->desc().section_param();
  MicroBatchSchedule::Options options;
  for (const SectionConfig& config : section.section_config()) options.concurrency.push_back(config.concurrency());
  options.queue_size = section.queue_size();
  options.one_forward_one_backward = section.schedule_mode() == 1;
  return options;
}

Status MultiTrainer::AddPipeline(WorkerSlot& slot, int index, WorkerParts* parts) {
  const PipelineProgram& program = *job_->pipeline();
  std::vector<const Frame*> frames;
  for (const FrameContext& context : slot.frames) frames.push_back(context.frame.get());
  MR_ASSIGN(slot.dense,
            LocalDenseParameters::Create(program, frames, session_->root(), session_->frame_options(index, false)));
  parts->dense = slot.dense.get();
  parts->pipeline.program = &program;
  parts->pipeline.schedule = ScheduleOptions();
  parts->pipeline.micro_batches = job_->micro_batches();
  parts->pipeline.profile = job_->desc().debug();
  const std::vector<int> cpus = UsableProcessors();
  if (!job_->desc().binding_cpu() || cpus.empty()) return Status::Ok();
  int threads = 0;
  for (const int concurrency : parts->pipeline.schedule.concurrency) threads += concurrency;
  const int first = job_->desc().section_param().start_cpu_core_id() + index * threads;
  for (int i = 0; i < threads; ++i) {
    parts->pipeline.cpus.push_back(cpus[static_cast<size_t>(first + i) % cpus.size()]);
  }
  return Status::Ok();
}

int MultiTrainer::PlaceOf(int worker) const { return worker + session_->ranks().rank() * job_->workers(); }

void MultiTrainer::StopWorkers() {
  stop_workers_.request_stop();
  pace_->StopReading();
}

Result<RunReport> MultiTrainer::Run(std::stop_token stop) {
  asked_to_stop_ = stop;
  Result<RunReport> report = run_->Run(*this, stop);
  if (dump_files_ == nullptr || !report.ok()) return report;
  MR_TRY(dump_files_->Finish(stop));
  return report;
}

Status MultiTrainer::Train(const std::stop_token& stop) {
  if (run_->is_resumed()) {
    Status taken_over = TakeOver(run_->state(), stop);
    run_->report().interrupted = taken_over.code() == StatusCode::kCancelled && stop.stop_requested();
    if (!taken_over.ok()) return run_->report().interrupted ? Status::Ok() : taken_over;
  }
  MR_TRY(Load());
  MR_TRY(run_->GoOn(stop));
  while (!run_->IsOver()) {
    MR_TRY(PreparePass(stop));
    if (!run_->IsOver()) MR_TRY(RunPass(stop));
  }
  if (!job_->desc().output().trace()) return Status::Ok();
  std::vector<const BatchTrace*> traces;
  for (const WorkerSlot& slot : worker_slots_) traces.push_back(slot.frames[0].trace.get());
  std::string& trace = run_->report().chrome_trace;
  if (job_->is_dist()) {
    MR_ASSIGN(trace, TraceOfRanks(session_->ranks(), job_->step(), traces, session_->spans()));
  } else {
    trace = ChromeTrace({TraceEvents(job_->train(), traces, session_->spans(), TimesOf(traces), {})});
  }
  return Status::Ok();
}

Status MultiTrainer::TakeOver(const RunState& state, const std::stop_token& stop) {
  pass_base_ = state.trained;
  if (session_->leads()) {
    all_metrics_[0]->Restore(state.metric_totals);
    if (job_->is_dist()) gathered_.SetEarlierBadLines(state.bad_lines);
  }
  if (readers_ != nullptr) MR_TRY(readers_->GoOn(state, stop));
  return LoadOperatorStates(state.operator_states, AllFrames(), job_->pipeline() != nullptr, stop);
}

Status MultiTrainer::LoadOnRanks(const std::function<Status(const std::stop_token& stop)>& load) {
  const std::stop_token& asked = asked_to_stop_;
  GroupCancellation& end = session_->ranks().cancellation();
  if (!on_asked_.has_value()) on_asked_.emplace(asked, [source = loading_]() mutable { source.request_stop(); });
  const std::stop_callback on_end(end.Begin(), [this] { loading_.request_stop(); });
  const std::stop_callback give_up(asked, [&end] { end.GiveUp(); });
  return session_->ranks().AgreeOnEnd(load(loading_.get_token()), asked);
}

Status MultiTrainer::Load() {
  auto* memory = dynamic_cast<InMemoryControl*>(&dataset());
  if (memory == nullptr) return Status::Ok();
  RunReport& report = run_->report();
  const auto start = Clock::now();
  Result<PassStats> load = PassStats{};
  const auto load_here = [&](const std::stop_token& ended) {
    if (job_->desc().dataset().preload()) {
      MR_TRY(memory->PreloadIntoMemory(ended));
      load = memory->WaitPreloadDone();
    } else if (!memory->IsLoaded()) {
      load = memory->LoadIntoMemory(ended);
    }
    return load.status();
  };
  Status loaded = LoadOnRanks(load_here);
  if (loaded.code() == StatusCode::kCancelled && (asked_to_stop_.stop_requested() || job_->is_dist())) {
    report.interrupted = true;
    return Status::Ok();
  }
  MR_TRY(std::move(loaded));
  int64_t rows = memory->MemoryDataSize();
  MR_TRY(gathered_.SumLoads(&*load, &rows));
  MR_TRY(session_->ranks().Agree(CheckBadLinesOfRanks(*load)));
  report.load = *std::move(load);
  report.load_seconds = SecondsSince(start);
  if (run_->hooks().reporter != nullptr) MR_TRY(run_->hooks().reporter->OnLoad(report.load));
  return NoteInput(rows);
}

Status MultiTrainer::NoteInput(int64_t rows) {
  RunState& state = run_->state();
  const int streams = session_->InputStreams(state.epoch);
  const bool is_within = !state.trained.empty();
  // Versions before did not note the rows of a day. One process has them in one order.
  const bool is_noted = state.input_rows > 0 || !job_->is_incremental();
  if (is_within && !is_noted && rows > 0 && job_->is_dist()) {
    return InvalidConfig("the checkpoint stands in the middle of epoch " + std::to_string(state.epoch + 1) +
                         ", and an earlier version wrote it, which did not note how ranks share out the rows of a day: "
                         "go on from one between two days, or start anew with --resume=never");
  }
  if (is_within && is_noted && state.input_rows != rows) {
    return InvalidConfig("the checkpoint was written with " + std::to_string(state.input_rows) +
                         " rows in memory, and there are now " + std::to_string(rows) +
                         "; it stands in the middle of epoch " + std::to_string(state.epoch + 1) +
                         " of that input, so restore it, or start anew with --resume=never");
  }
  // Without rows in memory positions are those of files.
  if (is_within && rows > 0 && state.input_streams != streams) {
    return InvalidConfig(
        "the checkpoint stands in the middle of epoch " + std::to_string(state.epoch + 1) +
        " of rows in the memory of " + std::to_string(state.input_streams) + " ranks that trained, and there are " +
        std::to_string(streams) + " now; " +
        (job_->is_dist() ? "start as many that train" : "with dist { update: ASYNC } one reads them as these did") +
        ", or start anew with --resume=never");
  }
  state.input_rows = rows;
  state.input_streams = streams;
  return Status::Ok();
}

Status MultiTrainer::PreparePass(const std::stop_token& stop) {
  auto* preparation = dynamic_cast<PassPreparation*>(&dataset());
  if (preparation == nullptr) return Status::Ok();
  const auto start = Clock::now();
  const auto prepare_here = [&](const std::stop_token& ended) {
    return Caught("the data of a pass", [&] { return preparation->PreparePass(run_->state().epoch, ended); });
  };
  Status prepared = LoadOnRanks(prepare_here);
  run_->report().load_seconds += SecondsSince(start);
  if (prepared.ok()) {
    int64_t rows = preparation->RowsInMemory();
    MR_TRY(session_->ranks().communicator().SumOverRanks({&rows, 1}));
    return NoteInput(rows);
  }
  const bool is_stop = job_->is_dist() ? prepared.code() == StatusCode::kCancelled : stop.stop_requested();
  if (!is_stop) return run_->CheckpointAfterFailure(prepared, true);
  run_->report().interrupted = true;
  return run_->SaveAtStop();
}

Status MultiTrainer::RunPass(const std::stop_token& stop) {
  RunState& state = run_->state();
  PassOptions options;
  options.pass = state.epoch;
  options.workers = session_->sources();
  options.ordered = job_->desc().update_mode() == TrainerDesc::SERIAL;
  options.seed = job_->desc().seed();
  options.trained = pass_base_.empty() ? nullptr : &pass_base_;
  if (!job_->is_dist()) options.bad_lines = &state.bad_lines;
  Status begun = Caught("training", [&]() -> Status {
    MR_TRY(dataset().BeginPass(options));
    // Before another rank may train, and call a meeting.
    gate_->StartPass();
    pace_->StartPass();
    for (size_t i = 0; i < worker_slots_.size(); ++i) {
      worker_slots_[i].worker->StartPass(i == 0 ? state.printed_batches : 0);
    }
    return Status::Ok();
  });
  begun = session_->ranks().Agree(begun);
  if (!begun.ok()) return run_->CheckpointAfterFailure(begun, readers_ == nullptr);

  run_->StartPass();
  session_->RenewPackedWeights();
  stop_workers_ = std::stop_source();
  is_sound_ = true;
  has_failed_ = is_stopping_ = false;
  fetch_observer_->StartPass(state.epoch, std::exchange(state.metric_window, std::nullopt));
  Status coordinated = RunWorkers(stop);
  Result<PassStats> stats = Caught("training", [&] { return dataset().EndPass(); });
  MR_TRY(std::move(coordinated));
  MR_TRY(MergePrivateVars());
  if (Status ended = session_->ranks().Agree(stats.status()); !ended.ok()) stats = std::move(ended);
  const WorkerSlot* const failed = FailedSlot();
  Status failure = failed != nullptr ? failed->status : stats.status();
  // In step all have the same failure.
  if (!job_->trains_in_step()) failure = session_->ranks().Agree(failure);
  if (!failure.ok()) {
    SnapshotAtEnd();
    MR_TRY(GatherProgress({}));
    return is_sound_ ? run_->CheckpointAfterFailure(failure, readers_ == nullptr) : run_->NameLastCheckpoint(failure);
  }
  const bool abandoned = dump_files_ != nullptr && dump_files_->abandoned();
  MR_TRY(session_->ranks().Agree(abandoned ? dump_files_->Finish(stop) : Status::Ok()));
  SnapshotAtEnd();
  MR_TRY(GatherProgress(*stats));
  if (readers_ != nullptr && state.step == 0 && !run_->is_ending()) MR_TRY(readers_->NothingToTrainOn());
  MR_TRY(FillPassReport(*stats));
  if (const Status lines = session_->ranks().Agree(CheckBadLinesOfRanks(run_->pass().data)); !lines.ok()) {
    return run_->CheckpointAfterFailure(lines, readers_ == nullptr);
  }
  MR_TRY(run_->ReportPass());
  // A resumed run goes through what is left of a pass that a stop ended.
  if (!run_->report().interrupted) {
    const int64_t from = readers_ != nullptr ? worker_slots_[0].worker->report().earlier_batches : 0;
    MR_TRY(run_->ReportPoint(from, std::move(last_fetched_)));
  }
  if (run_->is_ending()) return Status::Ok();
  MR_TRY(run_->EndPass(stop));
  pass_base_.Clear();
  gathered_.SetEarlierBadLines({});
  for (MetricAccumulator* accumulator : all_metrics_) accumulator->Clear();
  return Status::Ok();
}

Status MultiTrainer::RunWorkers(const std::stop_token& stop) {
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < worker_slots_.size(); ++i) {
    Status started = Caught("training", [&] {
      threads.emplace_back([this, i] { RunWorker(i); });
      return Status::Ok();
    });
    if (started.ok()) continue;
    worker_slots_[i].status = std::move(started);
    EndWorker(i);
  }
  Status coordinated = Caught("training", [&] { return Coordinate(*gate_, stop); });
  if (coordinated.ok()) return coordinated;
  StopWorkers();
  gate_->Resume();
  return coordinated;
}

void MultiTrainer::RunWorker(size_t index) {
  WorkerSlot& slot = worker_slots_[index];
  slot.status = Caught("training", [&] {
    const int worker = static_cast<int>(index);
    BatchSource& source = dataset().source(worker);
    const std::unique_ptr<BatchSource> paced = pace_->SourceOf(worker, source);
    return slot.worker->Train(paced == nullptr ? source : *paced, stop_workers_.get_token());
  });
  Status told = Caught("training", [&] {
    // A queue that its producer closed by a failure says kCancelled, as a stop and a handler that ends the run do.
    const bool is_own = slot.worker->report().input_failed && !stop_workers_.stop_requested();
    slot.was_stopped = slot.status.code() == StatusCode::kCancelled && !is_own;
    if (!slot.status.ok() && !CanCheckpointAfter(slot)) is_sound_ = false;
    return Status::Ok();
  });
  if (!told.ok()) {
    slot.status = std::move(told);
    slot.was_stopped = is_sound_ = false;
  }
  EndWorker(index);
}

void MultiTrainer::EndWorker(size_t index) {
  const WorkerSlot& slot = worker_slots_[index];
  if (!slot.status.ok()) StopWorkers();
  if (!slot.status.ok() && !slot.was_stopped) {
    has_failed_ = true;
    pace_->ReportFailure();
  }
  gate_->Done(static_cast<int>(index));
}

const MultiTrainer::WorkerSlot* MultiTrainer::FailedSlot() const {
  // A NaN goes through shared parameters to batches that have none: theirs are not the lines to look at.
  const auto has_cause = [](const WorkerSlot& slot) {
    return std::any_of(slot.frames.begin(), slot.frames.end(),
                       [](const FrameContext& context) { return context.nan_check->found_in_input(); });
  };
  const WorkerSlot* failed = nullptr;
  for (const WorkerSlot& slot : worker_slots_) {
    if (slot.status.ok() || slot.was_stopped) continue;
    if (has_cause(slot)) return &slot;
    if (failed == nullptr) failed = &slot;
  }
  return failed;
}

Status MultiTrainer::Coordinate(PauseGate& gate, const std::stop_token& stop) {
  while (true) {
    const PauseGate::Event event = gate.Wait(kTick);
    switch (event) {
      case PauseGate::Event::kAllDone: {
        MR_ASSIGN(const bool have_all_ended, pace_->HaveAllEnded());
        if (have_all_ended) return Status::Ok();
        gate.WaitForAsk(kTick);
        run_->Tick();
        break;
      }
      case PauseGate::Event::kTick: run_->Tick(); break;
      case PauseGate::Event::kPaused: {
        MR_ASSIGN(const bool is_over, AtPause(stop));
        gate.Resume();
        if (is_over) return Status::Ok();
        pace_->LookForPause();
        // One that failed while the others were told that none has.
        if (has_failed_ && !is_stopping_) pace_->ReportFailure();
        break;
      }
    }
    if (is_stopping_) continue;
    const std::stop_token& asked = asked_to_stop_;
    if (asked.stop_requested() || run_->IsTimeForCheckpoint(event != PauseGate::Event::kTick || gate.AnyBusy())) {
      pace_->AskForPause(asked.stop_requested());
    }
    if (asked.stop_requested()) job_->is_dist() ? AbandonDumpThatHangs() : StopWithinBatch();
  }
}

Result<bool> MultiTrainer::AtPause(const std::stop_token& stop) {
  const auto paused = Clock::now();
  MR_TRY(MergePrivateVars());
  MR_ASSIGN(const Pace::Standing standing, pace_->StandStill(has_failed_));
  Snapshot();
  MR_TRY(GatherProgress({}));
  const bool goes_on = is_sound_ && !standing.has_one_failed && !standing.have_all_ended;
  if (!is_stopping_ && goes_on) MR_TRY(run_->AtBoundary(stop));
  if (!is_sound_ && stop.stop_requested()) run_->report().interrupted = run_->report().is_unsound = true;
  is_stopping_ = run_->is_ending() || standing.has_one_failed;
  if (is_stopping_) StopWorkers();
  fetch_observer_->TakeBack(run_->state().metric_totals);
  run_->pass().pause_seconds += SecondsSince(paused);
  return standing.have_all_ended;
}

void MultiTrainer::StopWithinBatch() {
  stop_seen_ = std::min(stop_seen_, Clock::now());
  if (Clock::now() - stop_seen_ < kPatience) return;
  if (dump_files_ != nullptr) dump_files_->Abandon();
  stop_workers_.request_stop();
}

void MultiTrainer::AbandonDumpThatHangs() {
  if (dump_files_ == nullptr) return;
  if (!dump_files_->IsHeldUp()) {
    stop_seen_ = Clock::time_point::max();
    return;
  }
  stop_seen_ = std::min(stop_seen_, Clock::now());
  if (Clock::now() - stop_seen_ >= kPatience) dump_files_->Abandon();
}

bool MultiTrainer::CanCheckpointAfter(const WorkerSlot& slot) const {
  if (slot.worker->report().input_failed) return true;
  const bool is_stop = slot.status.code() == StatusCode::kCancelled;
  // What fails in a step before ranks add up leaves all as it was.
  if (!slot.worker->report().was_cut) return is_stop || job_->trains_in_step();
  if (readers_ != nullptr) return false;  // they have read what was not trained
  // Their kernels may have run in it: what they keep is ahead of the batches that are whole.
  const bool keeps = std::any_of(slot.frames.begin(), slot.frames.end(),
                                 [](const FrameContext& context) { return !context.frame->states().empty(); });
  if (keeps) return false;
  // A pipeline's metrics have the micro-batches that were whole.
  if (job_->pipeline() != nullptr) return false;
  return is_stop ? job_->step().IsSideEffectFreeWhenStopped()
                 : job_->step().IsSideEffectFree(slot.frames[0].frame->failed_op() + 1);
}

Status MultiTrainer::SaveStates(RunState* state) {
  if (readers_ != nullptr) state->readers = readers_->PositionsFor(*state);
  MR_ASSIGN(state->operator_states, SaveOperatorStates(AllFrames()));
  return Status::Ok();
}

std::vector<const Frame*> MultiTrainer::AllFrames() const {
  std::vector<const Frame*> frames;
  for (const WorkerSlot& slot : worker_slots_) {
    for (const FrameContext& context : slot.frames) frames.push_back(context.frame.get());
    if (slot.dense != nullptr) frames.push_back(&slot.dense->update());
  }
  return frames;
}

void MultiTrainer::Snapshot() {
  SnapshotProgress();
  fetch_observer_->LendTo(run_->state().metric_totals);
}

void MultiTrainer::SnapshotAtEnd() {
  SnapshotProgress();
  fetch_observer_->EndInto(run_->state().metric_totals);
  if (job_->desc().infer()) run_->state().metric_totals.examples = examples_.Take(job_->metrics().exact_metrics());
}

Status MultiTrainer::GatherProgress(const PassStats& data) {
  bool is_sound = is_sound_;
  bool is_asked_to_stop = asked_to_stop_.stop_requested();
  for (const WorkerSlot& slot : worker_slots_) {
    // Cut between two steps: its updates failed, which the others learn of in the next step.
    if (job_->trains_in_step() && slot.worker->report().was_cut) is_sound = false;
  }
  const auto mine = [&] {
    RankProgress progress;
    progress.bad_lines = run_->state().bad_lines;
    progress.totals = run_->state().metric_totals;
    progress.data = data;
    for (const WorkerSlot& slot : worker_slots_) {
      progress.trained.Merge(slot.worker->consumed());
      progress.AddWorker(slot.worker->report());
    }
    return progress;
  };
  MR_TRY(gathered_.Gather(mine, &run_->state(), &is_sound, &is_asked_to_stop));
  is_sound_ = is_sound;
  if (is_asked_to_stop) run_->StopAll();
  return Status::Ok();
}

void MultiTrainer::SnapshotProgress() {
  RunState& state = run_->state();
  fetch_observer_->TakeBack(state.metric_totals);
  state.step = run_->progress().steps_done.load();
  state.examples = run_->progress().examples.load();
  state.trained = pass_base_;
  for (const WorkerSlot& slot : worker_slots_) state.trained.Merge(slot.worker->consumed());
  if (const auto* counts = dynamic_cast<const BadLineCounts*>(&dataset())) {
    state.bad_lines = counts->BadLinesWithin(state.trained);
  }
  const WorkerReport& first = worker_slots_[0].worker->report();
  state.printed_batches = first.earlier_batches + first.batches;
  state.metric_totals = job_->metrics().NewTotals();
  state.metric_window = fetch_observer_->Window();
}

Status MultiTrainer::CheckBadLinesOfRanks(const PassStats& data) const {
  const BadLinePolicy& policy = job_->desc().data_desc().bad_lines();
  if (policy.action() == BadLinePolicy::FAIL || data.bad_lines <= policy.max_lines()) {
    return Status::Ok();
  }
  return TooManyBadLines(data.bad_lines, std::to_string(data.lines) + " lines of all ranks",
                         "max_lines: " + std::to_string(policy.max_lines()), data.first_bad_lines);
}

Status MultiTrainer::FillPassReport(const PassStats& stats) {
  PassReport& pass = run_->pass();
  RankProgress all;
  all.data = stats;
  for (const WorkerSlot& slot : worker_slots_) all.AddWorker(slot.worker->report());
  all.AddCounts(gathered_.others());
  pass.data = all.data;
  pass.batches = all.batches;
  pass.examples = all.examples;
  pass.read_seconds = 1e-9 * static_cast<double>(all.read_nanoseconds);
  pass.run_seconds = 1e-9 * static_cast<double>(all.run_nanoseconds);
  pass.exchange_seconds = 1e-9 * static_cast<double>(all.exchange_nanoseconds);
  pass.loss = job_->metrics().Loss(run_->state().metric_totals);
  pass.metrics = job_->metrics().Compute(run_->state().metric_totals);
  pass.non_finite_rows = job_->metrics().NonFiniteRows(run_->state().metric_totals);
  pass.remarks = job_->metrics().Remarks(pass.metrics, run_->state().metric_totals);
  // The first worker is the one that prints; of a short pass it may have got nothing.
  const auto busy = std::find_if(worker_slots_.begin(), worker_slots_.end(),
                                 [](const WorkerSlot& slot) { return slot.worker->report().batches > 0; });
  if (busy == worker_slots_.end()) return Status::Ok();
  MR_ASSIGN(last_fetched_, FetchedVariables(*job_, *busy->frames[0].frame, session_->root()));
  if (job_->desc().has_program()) pass.fetched = last_fetched_;
  return Status::Ok();
}

Status MultiTrainer::MergePrivateVars() {
  Tensor sum;
  Tensor part;
  for (const std::string& name : job_->desc().hogwild_param().stat_var_names()) {
    Tensor* const shared = session_->root().Var(name)->GetMutable<Tensor>();
    MR_TRY(CopyToHost(*shared, &sum));
    for (size_t i = 1; i < worker_slots_.size(); ++i) {
      Tensor* const own = worker_slots_[i].frames[0].frame->scope().Var(name)->GetMutable<Tensor>();
      MR_TRY(CopyToHost(*own, &part));
      const int64_t size = std::min(part.numel(), sum.numel());
      for (int64_t k = 0; k < size; ++k) {
        if (part.dtype() == DType::kInt64) {
          sum.mutable_data<int64_t>()[k] += std::exchange(part.mutable_data<int64_t>()[k], 0);
        } else {
          sum.mutable_data<float>()[k] += std::exchange(part.mutable_data<float>()[k], 0.f);
        }
      }
      MR_TRY(CopyFromHost(part, own));
    }
    MR_TRY(CopyFromHost(sum, shared));
  }
  return Status::Ok();
}

}  // namespace millrace
