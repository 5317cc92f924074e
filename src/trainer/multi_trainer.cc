#include "trainer/multi_trainer.h"

#include <glog/logging.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/caught.h"
#include "datafeed/input_opener.h"
#include "runtime/transfer.h"
#include "trainer/model_check.h"
#include "trainer/operator_states.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kTick{100};
/// A stop waits so long for the ends of batches before it comes within them.
constexpr std::chrono::milliseconds kPatience{500};

double Seconds(std::chrono::steady_clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

Result<std::unique_ptr<Trainer>> MultiTrainer::Create(Job& job, TrainerHooks hooks) {
  MR_ASSIGN(QualityWatch watch, QualityWatch::Create(job));
  std::unique_ptr<MultiTrainer> trainer(new MultiTrainer(job, std::move(hooks), std::move(watch)));
  MR_TRY(trainer->MakeWorkerSlots());
  if (job.eval_dataset() != nullptr) {
    MR_ASSIGN(trainer->evaluator_, Evaluator::Create(job, *job.eval_dataset()));
  }
  return std::unique_ptr<Trainer>(std::move(trainer));
}

Status MultiTrainer::MakeWorkerSlots() {
  const int workers = job_->workers();
  for (const std::string& name : job_->desc().hogwild_param().stat_var_names()) {
    const Variable* shared = job_->root().Find(name);
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
  if (job_->desc().dump_fields_size() > 0 || job_->desc().dump_param_size() > 0) {
    MR_ASSIGN(dump_files_, DumpFiles::Create(job_->desc(), hooks_.resume.has_value()));
  }
  if (job_->desc().infer()) progress_.serialized_warmup_steps = 0;
  VLOG(3) << "worker thread num: " << workers << ", device worker: " << job_->desc().device_worker_name();
  const std::vector<OpDesc>& ops = job_->step().ops();
  for (size_t i = 0; i < ops.size(); ++i) VLOG(3) << "op[" << i << "]->Type(): " << ops[i].type();
  gate_ = std::make_unique<PauseGate>(workers);
  worker_slots_.resize(static_cast<size_t>(workers));
  const int frames =
      job_->pipeline() == nullptr ? 1 : MicroBatchSchedule(ScheduleOptions()).scopes(job_->micro_batches());
  for (int i = 0; i < workers; ++i) MR_TRY(MakeFrames(worker_slots_[static_cast<size_t>(i)], i, frames));
  const TrainerDesc& desc = job_->desc();
  std::vector<const Frame*> watched;
  for (const FrameContext& context : worker_slots_[0].frames) watched.push_back(context.frame.get());
  fetch_observer_ = std::make_unique<FetchObserver>(*job_, watched, all_metrics_, progress_, hooks_.reporter);
  if (desc.debug() && job_->pipeline() == nullptr) profile_observer_ = std::make_unique<ProfileObserver>();
  if (!job_->exports().empty()) vocabulary_observer_ = std::make_unique<VocabularyObserver>(job_->exports());
  if (job_->fetch_handler() != nullptr) {
    handler_observer_ = std::make_unique<HandlerObserver>(*job_->fetch_handler(), watched);
  }
  for (int i = 0; i < workers; ++i) MR_TRY(MakeWorker(worker_slots_[static_cast<size_t>(i)], i));
  progress_.pause_every = hooks_.checkpointer != nullptr ? desc.checkpoint().every_steps() : 0;
  progress_.eval_every = job_->eval_dataset() != nullptr ? desc.eval().every_steps() : 0;
  return Status::Ok();
}

Status MultiTrainer::MakeFrames(WorkerSlot& slot, int index, int count) {
  slot.frames.resize(static_cast<size_t>(count));
  for (FrameContext& context : slot.frames) {
    MR_ASSIGN(context.frame, Frame::Create(job_->step(), &job_->dataset().schema(), job_->root(),
                                           job_->frame_options(index, job_->desc().infer())));
    MR_ASSIGN(context.metrics, MetricAccumulator::Create(job_->metrics(), *context.frame, &job_->label_monitor()));
    all_metrics_.push_back(context.metrics.get());
    MR_TRY(MakeObservers(context, index));
  }
  return Status::Ok();
}

Status MultiTrainer::MakeObservers(FrameContext& context, int index) {
  const TrainerDesc& desc = job_->desc();
  MR_ASSIGN(context.nan_check, NanCheck::Create(job_->step(), *context.frame, job_->nan_check_rule()));
  if (dump_files_ != nullptr) {
    MR_ASSIGN(context.dump, DumpObserver::Create(desc, job_->step(), *context.frame, index, *dump_files_));
  }
  if (desc.output().trace() || (desc.debug() && index == 0)) context.frame->EnableProfile();
  if (desc.output().trace()) {
    context.trace =
        std::make_unique<BatchTrace>(index, desc.output().trace_first_batch(), desc.output().trace_batches(),
                                     job_->step().ops().size(), job_->spans());
  }
  return Status::Ok();
}

std::vector<BatchObserver*> MultiTrainer::ObserversOf(const FrameContext& context, int index) const {
  std::vector<BatchObserver*> observers = {context.nan_check.get(), context.dump.get(), context.trace.get()};
  if (index == 0) {
    observers.insert(observers.end(), {fetch_observer_.get(), handler_observer_.get(), profile_observer_.get(),
                                       vocabulary_observer_.get()});
  }
  std::erase(observers, nullptr);
  return observers;
}

Status MultiTrainer::MakeWorker(WorkerSlot& slot, int index) {
  WorkerParts parts;
  parts.index = index;
  for (const FrameContext& context : slot.frames) {
    MetricAccumulator* metrics = job_->metrics().names().empty() ? nullptr : context.metrics.get();
    parts.frames.push_back({context.frame.get(), metrics, ObserversOf(context, index)});
  }
  parts.gate = gate_.get();
  parts.progress = &progress_;
  parts.file_names = &job_->dataset().files();
  parts.lines_are_piped = !PipeCommandOf(job_->desc().data_desc()).empty();
  const std::vector<int> cpus = UsableProcessors();
  if (job_->desc().binding_cpu() && !cpus.empty()) parts.cpu = cpus[static_cast<size_t>(index) % cpus.size()];
  if (job_->pipeline() != nullptr) MR_TRY(AddPipeline(slot, index, &parts));
  const std::string& name = job_->desc().device_worker_name();
  MR_ASSIGN(const WorkerMaker* maker, job_->environment().workers.Get(name).Context("device_worker_name"));
  return Caught("making the device worker \"" + name + "\"", [&] {
    slot.worker = (*maker)(std::move(parts));
    return Status::Ok();
  });
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
  MR_ASSIGN(slot.dense, LocalDenseParameters::Create(program, frames, job_->root(), job_->frame_options(index, false)));
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

Result<RunReport> MultiTrainer::Run(std::stop_token stop) {
  Result<RunReport> report = Caught("training", [&] { return RunPasses(stop); });
  if (hooks_.reached != nullptr) *hooks_.reached = state_;
  if (dump_files_ == nullptr || !report.ok()) return report;
  MR_TRY(dump_files_->Finish(stop));
  return report;
}

Result<RunReport> MultiTrainer::RunPasses(const std::stop_token& stop) {
  if (hooks_.resume.has_value()) {
    state_ = *hooks_.resume;
    pass_base_ = state_.trained;
    progress_.steps_started = state_.step;
    progress_.steps_done = state_.step;
    progress_.examples = state_.examples;
    last_checkpoint_step_ = report_.saved_step = state_.step;
    all_metrics_[0]->Restore(state_.metric_totals);
    MR_TRY(LoadOperatorStates(state_.operator_states, AllFrames(), job_->pipeline() != nullptr, stop));
    report_.stopped_early = watch_.ShouldStop(state_);
  }
  last_checkpoint_ = Clock::now();
  MR_TRY(Load(stop));
  const bool goes_on = hooks_.resume.has_value() && hooks_.on_resumed != nullptr;
  if (goes_on && !report_.interrupted) MR_TRY(hooks_.on_resumed());
  if (hooks_.pass_saver != nullptr && !report_.interrupted && !state_.save_failures.empty()) {
    const size_t failed = state_.save_failures.size();
    MR_TRY(hooks_.pass_saver->Retry(&state_.save_failures, stop));
    if (state_.save_failures.size() < failed) MR_TRY(SaveCheckpoint());
  }
  MR_TRY(CatchUpEvaluation(stop));
  while (state_.epoch < job_->passes() && !report_.interrupted && !report_.stopped_early) {
    MR_TRY(PreparePass(stop));
    if (!report_.interrupted) MR_TRY(RunPass(stop));
  }
  // A run that was over when it was resumed says how good its model is, too.
  if (evaluator_ != nullptr && report_.passes.empty() && !report_.interrupted) {
    MR_TRY(Evaluate(stop));
    report_.interrupted = stop.stop_requested();
  }
  report_.state = state_;
  if (job_->desc().output().trace()) {
    std::vector<const BatchTrace*> traces;
    for (const WorkerSlot& slot : worker_slots_) traces.push_back(slot.frames[0].trace.get());
    report_.chrome_trace = ChromeTrace(job_->train(), traces, job_->spans());
  }
  return report_;
}

Status MultiTrainer::Load(const std::stop_token& stop) {
  auto* memory = dynamic_cast<InMemoryControl*>(&job_->dataset());
  if (memory == nullptr) return Status::Ok();
  const auto start = Clock::now();
  Result<PassStats> load = PassStats{};
  if (job_->desc().dataset().preload()) {
    MR_TRY(memory->PreloadIntoMemory(stop));
    load = memory->WaitPreloadDone();
  } else if (!memory->IsLoaded()) {
    load = memory->LoadIntoMemory(stop);
  }
  if (!load.ok() && stop.stop_requested()) {
    report_.interrupted = true;
    return Status::Ok();
  }
  MR_ASSIGN(report_.load, std::move(load));
  report_.load_seconds = Seconds(Clock::now() - start);
  if (hooks_.reporter != nullptr) MR_TRY(hooks_.reporter->OnLoad(report_.load));
  const int64_t rows = memory->MemoryDataSize();
  if (!state_.trained.empty() && state_.input_rows != rows) {
    return InvalidConfig("the checkpoint was written with " + std::to_string(state_.input_rows) +
                         " rows in memory, and there are now " + std::to_string(rows) +
                         "; it stands in the middle of epoch " + std::to_string(state_.epoch + 1) +
                         " of that input, so restore it, or start anew with --resume=never");
  }
  state_.input_rows = rows;
  return Status::Ok();
}

Status MultiTrainer::CatchUpEvaluation(const std::stop_token& stop) {
  const bool is_due = evaluator_ != nullptr && hooks_.resume.has_value() && !report_.interrupted &&
                      Crossed(job_->desc().eval().every_steps(), state_.last_eval_step);
  if (!is_due || state_.trained.empty()) return Status::Ok();
  MR_TRY(Evaluate(stop));
  if (stop.stop_requested()) report_.interrupted = true;
  return report_.interrupted || report_.stopped_early || last_eval_was_best_ ? SaveCheckpoint() : Status::Ok();
}

Status MultiTrainer::PreparePass(const std::stop_token& stop) {
  auto* preparation = dynamic_cast<PassPreparation*>(&job_->dataset());
  if (preparation == nullptr) return Status::Ok();
  const auto start = Clock::now();
  Status prepared = Caught("the data of a pass", [&] { return preparation->PreparePass(state_.epoch, stop); });
  report_.load_seconds += Seconds(Clock::now() - start);
  if (prepared.ok()) return prepared;
  if (!stop.stop_requested()) return CheckpointAfterFailure(prepared, true);
  report_.interrupted = true;
  return SaveCheckpoint();
}

Status MultiTrainer::RunPass(const std::stop_token& stop) {
  Dataset& dataset = job_->dataset();
  PassOptions options;
  options.pass = state_.epoch;
  options.workers = job_->workers();
  options.ordered = job_->desc().update_mode() == TrainerDesc::SERIAL;
  options.seed = job_->desc().seed();
  options.trained = pass_base_.empty() ? nullptr : &pass_base_;
  options.bad_lines = &state_.bad_lines;
  MR_TRY(dataset.BeginPass(options));

  pass_ = {};
  pass_.epoch = state_.epoch;
  pass_start_ = Clock::now();
  progress_.pass_examples = 0;
  stop_workers_ = std::stop_source();
  is_sound_ = true;
  fetch_observer_->StartPass(state_.epoch, std::exchange(state_.metric_window, std::nullopt));
  gate_->StartPass();
  Status coordinated;
  {
    report_.finite_step = -1;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < worker_slots_.size(); ++i) {
      worker_slots_[i].worker->StartPass(i == 0 ? state_.printed_batches : 0);
      Status started = Caught("training", [&] {
        threads.emplace_back([this, i] { RunWorker(i); });
        return Status::Ok();
      });
      if (started.ok()) continue;
      worker_slots_[i].status = std::move(started);
      EndWorker(i);
    }
    coordinated = Caught("training", [&] { return Coordinate(*gate_, stop); });
    if (!coordinated.ok()) {
      stop_workers_.request_stop();
      gate_->Resume();
    }
  }
  Result<PassStats> stats = dataset.EndPass();
  MR_TRY(std::move(coordinated));
  if (const WorkerSlot* failed = FailedSlot(); failed != nullptr) {
    Snapshot();
    return is_sound_ ? CheckpointAfterFailure(failed->status, true)
                     : BehindCheckpoint(failed->status, report_.saved_step);
  }
  if (!stats.ok()) return std::move(stats).status();
  if (dump_files_ != nullptr && dump_files_->abandoned()) return dump_files_->Finish(stop);
  Snapshot();
  MR_TRY(FillPassReport(*stats));
  if (hooks_.reporter != nullptr) {
    MR_TRY(hooks_.reporter->OnPass(pass_));
    // A resumed run goes through what is left of a pass that a stop ended.
    if (!report_.interrupted && pass_.batches > 0 && PrintsNothing(*job_, 0, state_.printed_batches)) {
      MR_TRY(hooks_.reporter->OnPoint(PointOfEpoch(*job_, state_, pass_.metrics, std::move(last_fetched_))));
    }
  }
  report_.passes.push_back(pass_);
  MR_TRY(MergePrivateVars());
  if (report_.interrupted || report_.stopped_early) return Status::Ok();
  return EndOfPass(stop);
}

void MultiTrainer::RunWorker(size_t index) {
  WorkerSlot& slot = worker_slots_[index];
  slot.status = Caught("training", [&] {
    return slot.worker->Train(job_->dataset().source(static_cast<int>(index)), stop_workers_.get_token());
  });
  if (!slot.status.ok() && !CanCheckpointAfter(slot)) is_sound_ = false;
  EndWorker(index);
}

void MultiTrainer::EndWorker(size_t index) {
  if (!worker_slots_[index].status.ok()) stop_workers_.request_stop();
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
    if (slot.status.ok() || slot.status.code() == StatusCode::kCancelled) continue;
    if (has_cause(slot)) return &slot;
    if (failed == nullptr) failed = &slot;
  }
  return failed;
}

Status MultiTrainer::Coordinate(PauseGate& gate, const std::stop_token& stop) {
  bool stopping = false;
  while (true) {
    switch (gate.Wait(kTick)) {
      case PauseGate::Event::kAllDone: return Status::Ok();
      case PauseGate::Event::kTick: Tick(); break;
      case PauseGate::Event::kPaused: {
        const auto paused = Clock::now();
        Snapshot();
        if (!stopping && is_sound_) MR_TRY(AtBoundary(stop));
        if (!is_sound_ && stop.stop_requested()) report_.interrupted = report_.is_unsound = true;
        stopping = report_.interrupted || report_.stopped_early;
        if (stopping) stop_workers_.request_stop();
        pass_.pause_seconds += Seconds(Clock::now() - paused);
        gate.Resume();
        break;
      }
    }
    const bool minutes_due = hooks_.checkpointer != nullptr && job_->desc().checkpoint().every_minutes() > 0 &&
                             Seconds(Clock::now() - last_checkpoint_) >= 60 * job_->desc().checkpoint().every_minutes();
    if (!stopping && (stop.stop_requested() || minutes_due)) gate.Ask();
    if (!stopping && stop.stop_requested()) StopWithinBatch();
  }
}

void MultiTrainer::StopWithinBatch() {
  stop_seen_ = std::min(stop_seen_, Clock::now());
  if (Clock::now() - stop_seen_ < kPatience) return;
  if (dump_files_ != nullptr) dump_files_->Abandon();
  stop_workers_.request_stop();
}

bool MultiTrainer::CanCheckpointAfter(const WorkerSlot& slot) const {
  if (slot.worker->report().input_failed) return true;
  const bool is_stop = slot.status.code() == StatusCode::kCancelled;
  if (!slot.worker->report().was_cut) return is_stop;
  // Their kernels may have run in it: what they keep is ahead of the batches that are whole.
  const bool keeps = std::any_of(slot.frames.begin(), slot.frames.end(),
                                 [](const FrameContext& context) { return !context.frame->states().empty(); });
  if (keeps) return false;
  // A pipeline's metrics have the micro-batches that were whole.
  if (job_->pipeline() != nullptr) return false;
  return is_stop ? job_->step().IsSideEffectFreeWhenStopped()
                 : job_->step().IsSideEffectFree(slot.frames[0].frame->failed_op() + 1);
}

bool MultiTrainer::Crossed(int64_t every, int64_t since) const {
  return every > 0 && state_.step / every > since / every;
}

Status MultiTrainer::AtBoundary(const std::stop_token& stop) {
  const CheckpointDesc& checkpoint = job_->desc().checkpoint();
  if (evaluator_ != nullptr && !stop.stop_requested() &&
      Crossed(job_->desc().eval().every_steps(), state_.last_eval_step)) {
    if (Status evaluated = Evaluate(stop); !evaluated.ok()) return CheckpointAfterFailure(evaluated, false);
  }
  const bool minutes_due =
      checkpoint.every_minutes() > 0 && Seconds(Clock::now() - last_checkpoint_) >= 60 * checkpoint.every_minutes();
  if (stop.stop_requested()) report_.interrupted = true;
  if (report_.interrupted || report_.stopped_early || minutes_due || last_eval_was_best_ ||
      Crossed(checkpoint.every_steps(), last_checkpoint_step_)) {
    MR_TRY(SaveCheckpoint());
  }
  return Status::Ok();
}

Status MultiTrainer::EndOfPass(const std::stop_token& stop) {
  if (pass_.data.lines > state_.data.lines) state_.data = pass_.data;
  const RunState trained = state_;
  ++state_.epoch;
  state_.trained.Clear();
  state_.printed_batches = 0;
  state_.bad_lines.clear();
  pass_base_.Clear();
  const bool last = state_.epoch == job_->passes();
  // A day without rows may be one of many; a model that saw none is no result.
  if (state_.examples == 0 && (last || !job_->is_incremental())) {
    Status nothing = NothingTo("train on", report_.load.files > 0 ? report_.load : pass_.data, job_->desc().data_desc(),
                               job_->dataset().files());
    const DataFeedDesc& feed = job_->desc().data_desc();
    if (!feed.drop_last()) return nothing;
    return BadData(nothing.message() + "; drop_last leaves out a batch of fewer than " +
                   std::to_string(feed.batch_size()) + " rows");
  }
  const auto due = [&](int every) { return every > 0 && state_.epoch % every == 0; };
  // One that every_steps asked for after the very last batch stands for it: the same again would use up patience.
  const bool is_measured = !report_.evaluations.empty() && report_.evaluations.back().step == state_.step;
  if (evaluator_ != nullptr && !is_measured && (last || due(job_->desc().eval().every_epochs()))) {
    const size_t evaluations = report_.evaluations.size();
    if (Status evaluated = Evaluate(stop); !evaluated.ok()) {
      state_ = trained;
      return CheckpointAfterFailure(evaluated, false);
    }
    if (report_.evaluations.size() == evaluations) {
      // Cut short. The checkpoint stands before the end of the epoch, so that a resumed run evaluates first.
      state_ = trained;
      report_.interrupted = true;
      return SaveCheckpoint();
    }
  }
  state_.last_metrics = pass_.metrics;
  for (MetricAccumulator* accumulator : all_metrics_) accumulator->Clear();
  state_.metric_totals = job_->metrics().NewTotals();
  state_.metric_window.reset();
  if (hooks_.pass_saver != nullptr) {
    MR_TRY(MergePrivateVars());
    MR_TRY(CheckToBeSaved(*job_, state_.step, &report_));
    Status saved = hooks_.pass_saver->SavePass(last || report_.stopped_early, stop, &state_);
    if (saved.code() == StatusCode::kCancelled) {
      // As with an evaluation: the run that goes on does it again, and evaluates again to know what was best.
      state_ = trained;
      last_eval_was_best_ = false;
      report_.stopped_early = false;
      report_.interrupted = true;
      return SaveCheckpoint();
    }
    MR_TRY(std::move(saved));
  }
  if (stop.stop_requested()) report_.interrupted = !last;
  if (report_.interrupted || report_.stopped_early || last_eval_was_best_ ||
      due(job_->desc().checkpoint().every_epochs())) {
    MR_TRY(SaveCheckpoint());
  }
  return Status::Ok();
}

Status MultiTrainer::Evaluate(const std::stop_token& stop) {
  MR_TRY(MergePrivateVars());
  Result<EvalReport> result = Caught("an evaluation", [&] { return evaluator_->Run(state_, stop); });
  // An evaluation that a stop cut short is not the run's failure; the checkpoint comes next.
  if (!result.ok() && stop.stop_requested()) return Status::Ok();
  MR_ASSIGN(const EvalReport report, std::move(result));
  // The same model once more, after a resume, is no further trial.
  const bool is_repeated = state_.step > 0 && state_.last_eval_step == state_.step;
  state_.last_eval_step = state_.step;
  if (!is_repeated) last_eval_was_best_ = watch_.IsBest(report, &state_);
  if (last_eval_was_best_) report_.best_evaluation = report;
  report_.stopped_early = watch_.ShouldStop(state_);
  if (hooks_.reporter != nullptr) MR_TRY(hooks_.reporter->OnEval(report));
  report_.evaluations.push_back(report);
  return Status::Ok();
}

Status MultiTrainer::SaveCheckpoint() {
  last_checkpoint_ = Clock::now();
  last_checkpoint_step_ = state_.step;
  if (hooks_.checkpointer == nullptr) return Status::Ok();
  MR_TRY(MergePrivateVars());
  MR_ASSIGN(state_.operator_states, SaveOperatorStates(AllFrames()));
  const auto start = Clock::now();
  MR_TRY(CheckToBeSaved(*job_, state_.step, &report_));
  MR_TRY(hooks_.checkpointer->Save(state_, std::exchange(last_eval_was_best_, false)));
  report_.saved_step = state_.step;
  report_.checkpoint_seconds += Seconds(Clock::now() - start);
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

Status MultiTrainer::CheckpointAfterFailure(const Status& failure, bool of_files) {
  if (hooks_.checkpointer == nullptr || state_.step == last_checkpoint_step_) return failure;
  const Status saved = Caught("a checkpoint", [this] { return SaveCheckpoint(); });
  return KeptBehind(failure, saved, state_.step, of_files);
}

void MultiTrainer::Snapshot() {
  state_.step = progress_.steps_done.load();
  state_.examples = progress_.examples.load();
  state_.trained = pass_base_;
  for (const WorkerSlot& slot : worker_slots_) state_.trained.Merge(slot.worker->consumed());
  if (const auto* counts = dynamic_cast<const BadLineCounts*>(&job_->dataset())) {
    state_.bad_lines = counts->BadLinesWithin(state_.trained);
  }
  const WorkerReport& first = worker_slots_[0].worker->report();
  state_.printed_batches = first.earlier_batches + first.batches;
  state_.metric_totals = job_->metrics().NewTotals();
  for (const MetricAccumulator* accumulator : all_metrics_) accumulator->AddTo(state_.metric_totals);
  state_.metric_window = fetch_observer_->Window();
}

void MultiTrainer::Tick() {
  if (hooks_.reporter == nullptr) return;
  RunProgress progress;
  progress.epoch = state_.epoch;
  progress.epochs = job_->passes();
  progress.pass_examples = progress_.pass_examples.load();
  progress.step = progress_.steps_done.load();
  progress.pass_seconds = Seconds(Clock::now() - pass_start_) - pass_.pause_seconds;
  progress.odd_labels = job_->label_monitor().of_losses().count + job_->label_monitor().of_measures().count;
  hooks_.reporter->OnTick(progress);
}

Status MultiTrainer::FillPassReport(const PassStats& stats) {
  pass_.data = stats;
  pass_.seconds = Seconds(Clock::now() - pass_start_) - pass_.pause_seconds;
  for (const WorkerSlot& slot : worker_slots_) {
    const WorkerReport& worker = slot.worker->report();
    pass_.batches += worker.batches;
    pass_.examples += worker.examples;
    pass_.read_seconds += 1e-9 * static_cast<double>(worker.read_nanoseconds);
    pass_.run_seconds += 1e-9 * static_cast<double>(worker.run_nanoseconds);
  }
  pass_.metrics = job_->metrics().Compute(state_.metric_totals);
  pass_.non_finite_rows = job_->metrics().NonFiniteRows(state_.metric_totals);
  // The first worker is the one that prints; of a short pass it may have got nothing.
  const auto busy = std::find_if(worker_slots_.begin(), worker_slots_.end(),
                                 [](const WorkerSlot& slot) { return slot.worker->report().batches > 0; });
  if (busy == worker_slots_.end()) return Status::Ok();
  MR_ASSIGN(last_fetched_, FetchedVariables(*job_, *busy->frames[0].frame));
  if (job_->desc().has_program()) pass_.fetched = last_fetched_;
  return Status::Ok();
}

Status MultiTrainer::MergePrivateVars() {
  Tensor sum;
  Tensor part;
  for (const std::string& name : job_->desc().hogwild_param().stat_var_names()) {
    Tensor* const shared = job_->root().Var(name)->GetMutable<Tensor>();
    MR_TRY(CopyToHost(*shared, &sum));
    for (size_t i = 1; i < worker_slots_.size(); ++i) {
      Tensor* const own = worker_slots_[i].frames[0].frame->scope().Var(name)->GetMutable<Tensor>();
      MR_TRY(CopyToHost(*own, &part));
      for (int64_t k = 0; k < part.numel(); ++k) {
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
