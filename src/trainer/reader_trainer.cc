#include "trainer/reader_trainer.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/operator_states.h"
#include "core/caught.h"
#include "core/delayed_stop.h"
#include "reader/looked_up.h"
#include "runtime/lod_tensor_codec.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kTickEvery{100};
/// A round that has begun gets this long to end after a stop request; its end can be saved, its middle cannot.
constexpr std::chrono::milliseconds kRoundMayTake{400};

}  // namespace

Result<std::unique_ptr<Trainer>> ReaderTrainer::Create(JobSession& session, TrainerHooks hooks) {
  const CompiledJob& job = session.job();
  std::unique_ptr<ReaderTrainer> trainer(new ReaderTrainer(session));
  MR_ASSIGN(trainer->run_, TrainingRun::Create(session, std::move(hooks)));
  TrainingRun& run = *trainer->run_;
  MR_ASSIGN(trainer->frame_, Frame::Create(job.train(), nullptr, session.root(), session.frame_options(0, false)));
  MR_ASSIGN(trainer->readers_, ProgramReaders::Find(job.train(), session.root()));
  MarkLookedUp(job.train(), trainer->frame_->scope());
  MR_TRY(CheckSources(job, *trainer->frame_, &run));
  run.report().feeds_itself = true;
  for (const std::string& name : job.plugin_sources()) {
    trainer->plugin_sources_.push_back(trainer->frame_->scope().Var(name)->GetMutable<Tensor>());
  }
  trainer->FindLoopVariables();
  trainer->FindWaits();
  const std::vector<const Frame*> frames = {trainer->frame_.get()};
  trainer->fetch_observer_ =
      std::make_unique<FetchObserver>(job, frames, trainer->no_metrics_, run.progress(), run.hooks().reporter);
  if (session.fetch_handler() != nullptr) {
    trainer->handler_observer_ = std::make_unique<HandlerObserver>(*session.fetch_handler(), frames);
  }
  MR_ASSIGN(trainer->nan_check_, NanCheck::Create(job.train(), *trainer->frame_, session.nan_check_rule()));
  return std::unique_ptr<Trainer>(std::move(trainer));
}

void ReaderTrainer::FindLoopVariables() {
  std::set<std::string> names;
  for (const OpDesc& op : job_->train().ops()) {
    if (op.type() == "while") break;
    for (const OpDesc::Var& output : op.outputs()) names.insert(output.arguments().begin(), output.arguments().end());
  }
  for (const std::string& name : names) {
    const auto meta = job_->train().vars().find(name);
    const bool is_tensor = meta != job_->train().vars().end() && meta->second.kind == VarType::LOD_TENSOR;
    if (!is_tensor || meta->second.persistable) continue;
    loop_variables_.push_back({name, frame_->scope().Var(name)->GetMutable<Tensor>()});
  }
}

bool ReaderTrainer::LeavesSomething(const OpDesc& op, const std::vector<NamedKernelState>& states) const {
  if (BlockOf(op) >= 0 || op.type() == "read" || op.type() == "reset") return true;
  if (std::any_of(states.begin(), states.end(), [&op](const NamedKernelState& kept) { return kept.op == &op; })) {
    return true;
  }
  const Executable& train = job_->train();
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      const auto meta = train.vars().find(name);
      if (meta != train.vars().end() && meta->second.persistable) return true;
      const std::vector<std::string>& sources = job_->plugin_sources();
      if (std::find(sources.begin(), sources.end(), name) != sources.end()) return true;
      for (const NamedTensor& variable : loop_variables_) {
        if (variable.name == name) return true;
      }
    }
  }
  return false;
}

void ReaderTrainer::FindWaits() {
  for (const OpDesc& op : job_->train().ops()) {
    if (op.type() == "while") loop_block_ = BlockOf(op);
  }
  const OpList& ops = RoundOps();
  const std::vector<NamedKernelState> states = frame_->states();
  while (begin_end_ < ops.size() && !LeavesSomething(ops[begin_end_], states)) ++begin_end_;
  tail_ = ops.size();
  while (tail_ > 0 && ops[tail_ - 1].type() == "has_next") --tail_;
}

bool ReaderTrainer::IsWait(size_t op) const {
  const std::string& type = RoundOps()[op].type();
  return (type == "read" || type == "has_next") && (op <= begin_end_ || op >= tail_);
}

Result<RunReport> ReaderTrainer::Run(std::stop_token stop) { return run_->Run(*this, stop); }

Status ReaderTrainer::Train(const std::stop_token& stop) {
  // A loop counts its rounds and nobody but itself its epochs: the whole training is one pass to the run.
  run_->StartPass();
  RunState& state = run_->state();
  reported_batches_ = state.printed_batches;
  last_tick_ = Clock::now();
  fetch_observer_->StartPass(state.epoch, std::nullopt);
  const Status status = RunLoop(stop);
  if (!status.ok() && status.code() == StatusCode::kCancelled && stop.stop_requested()) {
    RunReport& report = run_->report();
    report.interrupted = true;
    const bool is_behind = state.step != run_->last_checkpoint_step();
    report.is_unsound = run_->hooks().checkpointer != nullptr && is_behind && !saved_at_stop_;
  } else {
    MR_TRY(status);
    if (state.step == 0) MR_TRY(readers_.NothingToTrainOn());
    MR_TRY(ReportPoint());
  }
  MR_TRY(FinishReport());
  return run_->ReportPass();
}

Status ReaderTrainer::ReportPoint() {
  const int64_t batches = run_->state().printed_batches;
  const int64_t from = std::exchange(reported_batches_, batches);
  if (run_->hooks().reporter == nullptr || from == batches) return Status::Ok();
  MR_ASSIGN(std::vector<FetchLine::Value> fetched, FetchedVariables(*job_, *frame_, *root_));
  return run_->ReportPoint(from, std::move(fetched));
}

Status ReaderTrainer::RunLoop(const std::stop_token& stop) {
  const GraceStop late(stop, kRoundMayTake);
  stop_ = stop;
  RunContext context;
  context.step = run_->state().step;
  context.stop = late.token();
  context.loop = this;
  MR_TRY(frame_->Run(context));
  return run_->SaveAtStop();
}

// What these three throw would be taken for an exception of the operator that runs the loop.

Status ReaderTrainer::BeforeLoop(RunContext* body) {
  return Caught("training", [&]() -> Status {
    MR_TRY(GoOn(stop_));
    body->step = run_->state().step;
    return Status::Ok();
  });
}

Status ReaderTrainer::AfterRound(RunContext* body) {
  return Caught("training", [&]() -> Status {
    const int64_t epoch = run_->state().epoch;
    MR_TRY(CountRound(body));
    // What is printed from here on is of this epoch, as a run that goes on from here says.
    if (run_->state().epoch != epoch) fetch_observer_->StartPass(run_->state().epoch, std::nullopt);
    return AtBoundary(stop_);
  });
}

Status ReaderTrainer::AfterCutRound(size_t op, Status failure, RunContext* body) {
  const bool is_stop = failure.code() == StatusCode::kCancelled;
  if (is_stop && !stop_.stop_requested()) return failure;
  if (!IsWait(op)) return is_stop ? failure : run_->NameLastCheckpoint(failure);
  return Caught("training", [&]() -> Status {
    if (op >= tail_) MR_TRY(CountRound(body));
    if (!is_stop) return run_->CheckpointAfterFailure(failure, false);
    MR_TRY(run_->SaveCheckpoint());
    return failure;
  });
}

Status ReaderTrainer::CountRound(RunContext* body) {
  MR_TRY(run_->NameLastCheckpoint(Caught("training", [&] { return CountStep(*body); })));
  RunState& state = run_->state();
  body->step = state.step;
  state.epoch = readers_.resets();
  return Status::Ok();
}

Status ReaderTrainer::AtBoundary(const std::stop_token& stop) {
  MR_TRY(run_->AtBoundary(stop));
  if (!run_->is_ending()) return Status::Ok();
  return Cancelled("stopped after step " + std::to_string(run_->state().step));
}

Status ReaderTrainer::GoOn(const std::stop_token& stop) {
  if (!run_->is_resumed()) return run_->GoOn(stop);
  const RunState& state = run_->state();
  MR_TRY(readers_.MoveTo(state.readers, stop));
  for (const LoopVariable& saved : state.loop_variables) {
    const auto it = std::find_if(loop_variables_.begin(), loop_variables_.end(),
                                 [&](const NamedTensor& variable) { return variable.name == saved.name; });
    if (it == loop_variables_.end()) {
      return InvalidConfig("the checkpoint is of a program whose loop has a variable \"" + saved.name +
                           "\", which this one has not");
    }
    MR_TRY(ReadLoDTensor(saved.bytes, "the checkpoint's \"" + saved.name + "\"", it->tensor).status());
  }
  MR_TRY(LoadOperatorStates(state.operator_states, {frame_.get()}, false, stop));
  // The stop may have come while the round asked; the answer is the same when it had been given.
  for (size_t i = tail_; i < RoundOps().size(); ++i) {
    const OpDesc& op = RoundOps()[i];
    MR_ASSIGN(const bool has_next, readers_.HasNext(InputArguments(op, "Reader")[0], stop));
    Tensor answer;
    *answer.Resize<bool>({1}) = has_next;
    MR_TRY(CopyFromHost(answer, frame_->scope().Var(OutputArguments(op, "Out")[0])->GetMutable<Tensor>()));
  }
  read_ = readers_.Counts();
  return run_->GoOn(stop);
}

Status ReaderTrainer::CountStep(const RunContext& context) {
  const ReaderCounts read = readers_.Counts();
  Tick();
  // Without readers, nobody but the plugin knows whether a round read something: each does.
  if (read.items == read_.items && plugin_sources_.empty()) return Status::Ok();
  int64_t examples = read.rows - read_.rows;
  for (const Tensor* given : plugin_sources_) {
    if (!given->empty() && given->dims().rank() > 0) examples += given->dims()[0];
  }
  read_ = read;
  RunState& state = run_->state();
  PassReport& pass = run_->pass();
  ++state.step;
  state.examples += examples;
  pass.examples += examples;
  ++pass.batches;
  ++state.printed_batches;
  SharedProgress& progress = run_->progress();
  progress.steps_done = state.step;
  progress.examples = state.examples;
  progress.pass_examples = pass.examples;
  const TrainedBatch trained{no_batch_, *frame_, context, state.printed_batches, 0, 0};
  MR_TRY(nan_check_->OnBatch(trained));
  if (handler_observer_ != nullptr) MR_TRY(handler_observer_->OnBatch(trained));
  return fetch_observer_->OnBatch(trained);
}

Status ReaderTrainer::SaveStates(RunState* state) {
  saved_at_stop_ = stop_.stop_requested();
  state->readers = readers_.Positions();
  state->loop_variables.clear();
  HostView host_view;
  for (const NamedTensor& variable : loop_variables_) {
    if (variable.tensor->empty()) continue;
    std::string bytes;
    MR_ASSIGN(const Tensor* const shown, host_view.Of(*variable.tensor));
    AppendLoDTensor(*shown, &bytes);
    state->loop_variables.push_back({variable.name, std::move(bytes)});
  }
  MR_ASSIGN(state->operator_states, SaveOperatorStates({frame_.get()}));
  return Status::Ok();
}

void ReaderTrainer::Tick() {
  if (Clock::now() - last_tick_ < kTickEvery) return;
  last_tick_ = Clock::now();
  run_->pass().pause_seconds = run_->report().checkpoint_seconds;
  run_->Tick();
}

Status ReaderTrainer::FinishReport() {
  PassReport& pass = run_->pass();
  pass.pause_seconds = run_->report().checkpoint_seconds;
  pass.run_seconds = run_->PassSeconds();
  if (pass.batches == 0) return Status::Ok();
  MR_ASSIGN(pass.fetched, FetchedVariables(*job_, *frame_, *root_));
  return Status::Ok();
}

}  // namespace millrace
