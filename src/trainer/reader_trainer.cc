#include "trainer/reader_trainer.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/caught.h"
#include "core/delayed_stop.h"
#include "reader/looked_up.h"
#include "runtime/lod_tensor_codec.h"
#include "runtime/transfer.h"
#include "trainer/model_check.h"
#include "trainer/operator_states.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kTickEvery{100};
/// A round that has begun gets this long to end after a stop request; its end can be saved, its middle cannot.
constexpr std::chrono::milliseconds kRoundMayTake{400};

double SecondsOf(std::chrono::steady_clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

ReaderTrainer::ReaderTrainer(Job& job, TrainerHooks hooks)
    : job_(&job), hooks_(std::move(hooks)), no_batch_(job.schema()) {}

Result<std::unique_ptr<Trainer>> ReaderTrainer::Create(Job& job, TrainerHooks hooks) {
  std::unique_ptr<ReaderTrainer> trainer(new ReaderTrainer(job, std::move(hooks)));
  MR_ASSIGN(trainer->frame_, Frame::Create(job.train(), nullptr, job.root(), job.frame_options(0, false)));
  MR_TRY(trainer->FindReaders());
  MarkLookedUp(job.train(), trainer->frame_->scope());
  MR_TRY(trainer->CheckSources());
  trainer->FindLoopVariables();
  trainer->FindWaits();
  const std::vector<const Frame*> frames = {trainer->frame_.get()};
  trainer->fetch_observer_ =
      std::make_unique<FetchObserver>(job, frames, trainer->no_metrics_, trainer->progress_, trainer->hooks_.reporter);
  if (job.fetch_handler() != nullptr) {
    trainer->handler_observer_ = std::make_unique<HandlerObserver>(*job.fetch_handler(), frames);
  }
  MR_ASSIGN(trainer->nan_check_, NanCheck::Create(job.train(), *trainer->frame_, job.nan_check_rule()));
  return std::unique_ptr<Trainer>(std::move(trainer));
}

Status ReaderTrainer::FindReaders() {
  const Executable& train = job_->train();
  std::set<std::string> used;
  std::set<std::string> read;
  for (int block = 0; block < train.block_count(); ++block) {
    for (const OpDesc& op : train.ops(block)) {
      for (const std::string& name : InputArguments(op, "Reader")) {
        used.insert(name);
        if (op.type() == "read") read.insert(name);
      }
    }
  }
  for (const std::string& name : used) {
    Variable* variable = job_->root().Find(name);
    if (variable == nullptr || !variable->Is<ReaderHolder>()) {
      return InvalidConfig(
          "reader \"" + name +
          "\": declare it as a persistable variable of type READER in both programs, and make it in the "
          "startup program");
    }
    auto* holder = variable->GetMutable<ReaderHolder>();
    MR_TRY(holder->shapes().status().Context("reader \"" + name + "\""));
    readers_.push_back({name, holder, read.contains(name)});
  }
  for (const std::string& name : job_->plugin_sources()) {
    plugin_sources_.push_back(frame_->scope().Var(name)->GetMutable<Tensor>());
  }
  return Status::Ok();
}

Status ReaderTrainer::CheckSources() {
  const std::vector<NamedKernelState> states = frame_->states();
  for (const std::string& name : job_->plugin_sources()) {
    const bool is_saved = std::any_of(states.begin(), states.end(),
                                      [&](const NamedKernelState& kernel) { return kernel.output == name; });
    if (!is_saved) report_.unsaved_operator = name;
  }
  if (report_.unsaved_operator.empty()) return Status::Ok();
  const std::string why = "what gives \"" + report_.unsaved_operator +
                          "\" reads by itself and does not say how far: its kernel is no KernelState "
                          "(runtime/kernel_state.h), so that no run can go on from a checkpoint; ";
  if (hooks_.resume.has_value()) return InvalidConfig("--resume: " + why + "start anew with --resume=never");
  if (hooks_.checkpointer == nullptr) report_.unsaved_operator.clear();  // nobody asked for any
  if (hooks_.checkpointer != nullptr && job_->desc().has_checkpoint()) {
    return InvalidConfig("checkpoint: " + why + "make it one, or leave out checkpoint");
  }
  hooks_.checkpointer = nullptr;
  return Status::Ok();
}

void ReaderTrainer::FindLoopVariables() {
  if (!job_->is_loop()) return;
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
  if (!job_->is_loop()) return;
  for (const OpDesc& op : job_->train().ops()) {
    if (op.type() == "while") loop_block_ = BlockOf(op);
  }
  const std::vector<OpDesc>& ops = job_->train().ops(loop_block_);
  const std::vector<NamedKernelState> states = frame_->states();
  while (begin_end_ < ops.size() && !LeavesSomething(ops[begin_end_], states)) ++begin_end_;
  tail_ = ops.size();
  while (tail_ > 0 && ops[tail_ - 1].type() == "has_next") --tail_;
}

Result<RunReport> ReaderTrainer::Run(std::stop_token stop) {
  state_.metric_totals = job_->metrics().NewTotals();
  report_.feeds_itself = true;
  if (hooks_.resume.has_value()) state_ = *hooks_.resume;
  progress_.examples = state_.examples;
  reported_batches_ = state_.printed_batches;
  last_checkpoint_step_ = report_.saved_step = state_.step;
  last_checkpoint_epoch_ = state_.epoch;
  start_ = last_tick_ = last_checkpoint_ = Clock::now();
  pass_.epoch = state_.epoch;
  fetch_observer_->StartPass(state_.epoch, std::nullopt);
  const Status status = Caught("training", [&] { return job_->is_loop() ? RunLoop(stop) : RunEpochs(stop); });
  if (hooks_.reached != nullptr) *hooks_.reached = state_;
  if (!status.ok() && status.code() == StatusCode::kCancelled && stop.stop_requested()) {
    report_.interrupted = true;
    const bool is_behind = state_.step != last_checkpoint_step_;
    report_.is_unsound = hooks_.checkpointer != nullptr && is_behind && !saved_at_stop_;
  } else {
    MR_TRY(status);
    MR_TRY(CheckTrained());
    if (job_->is_loop()) MR_TRY(ReportPoint());
  }
  MR_TRY(FinishReport());
  if (hooks_.reporter != nullptr) MR_TRY(hooks_.reporter->OnPass(pass_));
  report_.passes.push_back(pass_);
  report_.state = state_;
  return report_;
}

Status ReaderTrainer::ReportPoint() {
  const int64_t from = std::exchange(reported_batches_, state_.printed_batches);
  if (hooks_.reporter == nullptr || from == state_.printed_batches) return Status::Ok();
  if (!PrintsNothing(*job_, from, state_.printed_batches)) return Status::Ok();
  MR_ASSIGN(std::vector<FetchLine::Value> fetched, FetchedVariables(*job_, *frame_));
  return hooks_.reporter->OnPoint(PointOfEpoch(*job_, state_, {}, std::move(fetched)));
}

Status ReaderTrainer::CheckTrained() const {
  if (state_.step > 0) return Status::Ok();
  for (const NamedReader& reader : readers_) {
    if (!reader.is_read) continue;
    return BadData("nothing to train on: reader \"" + reader.name + "\" delivered no item; are its files empty?");
  }
  return Status::Ok();
}

Status ReaderTrainer::RunLoop(const std::stop_token& stop) {
  const LateStop late(stop, kRoundMayTake);
  stop_ = stop;
  RunContext context;
  context.step = state_.step;
  context.stop = late.token();
  context.loop = this;
  MR_TRY(frame_->Run(context));
  return hooks_.checkpointer == nullptr || last_checkpoint_step_ == state_.step ? Status::Ok() : SaveCheckpoint();
}

Status ReaderTrainer::BeforeLoop(RunContext* body) {
  MR_TRY(GoOn(stop_));
  body->step = state_.step;
  return Status::Ok();
}

Status ReaderTrainer::CountRound(RunContext* body) {
  MR_TRY(CountStep(*body));
  body->step = state_.step;
  state_.epoch = 0;
  for (const NamedReader& reader : readers_) {
    state_.epoch = std::max(state_.epoch, static_cast<int64_t>(reader.holder->position().resets));
  }
  return Status::Ok();
}

Status ReaderTrainer::AfterRound(RunContext* body) {
  const int64_t epoch = state_.epoch;
  MR_TRY(CountRound(body));
  // What is printed from here on is of this epoch, as a run that goes on from here says.
  if (state_.epoch != epoch) fetch_observer_->StartPass(state_.epoch, std::nullopt);
  if (stop_.stop_requested()) {
    MR_TRY(SaveCheckpoint());
    return Cancelled("stopped after step " + std::to_string(state_.step));
  }
  return CheckpointIfDue(state_.epoch > epoch);
}

Status ReaderTrainer::AfterCutRound(size_t op, Status failure, RunContext* body) {
  const bool is_stop = failure.code() == StatusCode::kCancelled;
  if (is_stop && !stop_.stop_requested()) return failure;
  const std::string& type = job_->train().ops(loop_block_)[op].type();
  if (type != "read" && type != "has_next") return failure;
  if (op < tail_ && op > begin_end_) return failure;
  if (op >= tail_) MR_TRY(CountRound(body));
  if (!is_stop) return CheckpointAfterFailure(failure);
  MR_TRY(SaveCheckpoint());
  return failure;
}

Status ReaderTrainer::CheckpointAfterFailure(const Status& failure) {
  if (hooks_.checkpointer == nullptr || state_.step == last_checkpoint_step_) return failure;
  const Status saved = Caught("a checkpoint", [this] { return SaveCheckpoint(); });
  return KeptBehind(failure, saved, state_.step, false);
}

Status ReaderTrainer::RunEpochs(const std::stop_token& stop) {
  stop_ = stop;
  MR_TRY(GoOn(stop));
  const LateStop late(stop, kRoundMayTake);
  RunContext context;
  context.stop = late.token();
  // The reader's position is that of a checkpoint, or where the call before this one left it: at the end, mostly.
  bool may_start_over = state_.readers.empty();
  while (state_.epoch < job_->passes()) {
    Result<bool> waited = Caught("a reader", [&] { return HasNextStep(stop); });
    if (!waited.ok() && waited.status().code() != StatusCode::kCancelled)
      return CheckpointAfterFailure(waited.status());
    if (!waited.ok()) MR_TRY(SaveCheckpoint());
    MR_ASSIGN(const bool has_next, std::move(waited));
    if (!has_next && std::exchange(may_start_over, false) && WasRead()) {
      MR_TRY(StartOver());
      continue;
    }
    may_start_over = false;
    if (has_next) {
      context.step = state_.step;
      MR_TRY(frame_->Run(context));
      MR_TRY(CountStep(context));
    } else {
      MR_TRY(ReportPoint());
      ++state_.epoch;
      if (state_.epoch < job_->passes()) MR_TRY(StartOver());
    }
    if (stop.stop_requested() && state_.epoch < job_->passes()) {
      MR_TRY(SaveCheckpoint());
      return Cancelled("stopped after step " + std::to_string(state_.step));
    }
    MR_TRY(CheckpointIfDue(!has_next));
  }
  return Status::Ok();
}

bool ReaderTrainer::WasRead() const {
  return std::any_of(readers_.begin(), readers_.end(),
                     [](const NamedReader& reader) { return reader.holder->position().items > 0; });
}

Status ReaderTrainer::StartOver() {
  for (const NamedReader& reader : readers_) {
    MR_TRY(reader.holder->ReInit().Context("reader \"" + reader.name + "\""));
  }
  return Status::Ok();
}

Result<bool> ReaderTrainer::HasNextStep(const std::stop_token& stop) {
  for (const NamedReader& reader : readers_) {
    if (!reader.is_read) continue;
    Result<bool> has_next = reader.holder->HasNext(stop);
    if (!has_next.ok() || !*has_next) return std::move(has_next).Context("reader \"" + reader.name + "\"");
  }
  return true;
}

Status ReaderTrainer::GoOn(const std::stop_token& stop) {
  if (!hooks_.resume.has_value()) return Status::Ok();
  for (const ReaderState& saved : state_.readers) {
    const auto it = std::find_if(readers_.begin(), readers_.end(),
                                 [&](const NamedReader& reader) { return reader.name == saved.name; });
    if (it == readers_.end()) {
      return InvalidConfig("the checkpoint is of a program with a reader \"" + saved.name +
                           "\", which this one has not");
    }
    MR_TRY(it->holder->MoveTo(saved.position, stop).Context("reader \"" + saved.name + "\""));
  }
  for (const LoopVariable& saved : state_.loop_variables) {
    const auto it = std::find_if(loop_variables_.begin(), loop_variables_.end(),
                                 [&](const NamedTensor& variable) { return variable.name == saved.name; });
    if (it == loop_variables_.end()) {
      return InvalidConfig("the checkpoint is of a program whose loop has a variable \"" + saved.name +
                           "\", which this one has not");
    }
    MR_TRY(ReadLoDTensor(saved.bytes, "the checkpoint's \"" + saved.name + "\"", it->tensor).status());
  }
  MR_TRY(LoadOperatorStates(state_.operator_states, {frame_.get()}, false, stop));
  // The stop may have come while the round asked; the answer is the same when it had been given.
  for (size_t i = tail_; loop_block_ >= 0 && i < job_->train().ops(loop_block_).size(); ++i) {
    const OpDesc& op = job_->train().ops(loop_block_)[i];
    for (const NamedReader& reader : readers_) {
      if (reader.name != InputArguments(op, "Reader")[0]) continue;
      MR_ASSIGN(const bool has_next, reader.holder->HasNext(stop));
      Tensor answer;
      *answer.Resize<bool>({1}) = has_next;
      MR_TRY(CopyFromHost(answer, frame_->scope().Var(OutputArguments(op, "Out")[0])->GetMutable<Tensor>()));
    }
  }
  read_ = Read();
  return hooks_.on_resumed == nullptr ? Status::Ok() : hooks_.on_resumed();
}

ReaderCounts ReaderTrainer::Read() const {
  ReaderCounts read;
  for (const NamedReader& reader : readers_) read.Add(*reader.holder);
  return read;
}

Status ReaderTrainer::CountStep(const RunContext& context) {
  const ReaderCounts read = Read();
  Tick();
  // Without readers, nobody but the plugin knows whether a round read something: each does.
  if (read.items == read_.items && plugin_sources_.empty()) return Status::Ok();
  int64_t examples = read.rows - read_.rows;
  for (const Tensor* given : plugin_sources_) {
    if (!given->empty() && given->dims().rank() > 0) examples += given->dims()[0];
  }
  read_ = read;
  ++state_.step;
  state_.examples += examples;
  pass_.examples += examples;
  ++pass_.batches;
  ++state_.printed_batches;
  progress_.steps_done = state_.step;
  progress_.examples = state_.examples;
  progress_.pass_examples = pass_.examples;
  const TrainedBatch trained{no_batch_, *frame_, context, state_.printed_batches, 0, 0};
  if (Status sound = nan_check_->OnBatch(trained); !sound.ok()) return BehindCheckpoint(sound, report_.saved_step);
  if (handler_observer_ != nullptr) MR_TRY(handler_observer_->OnBatch(trained));
  return fetch_observer_->OnBatch(trained);
}

Status ReaderTrainer::CheckpointIfDue(bool epoch_ended) {
  if (hooks_.checkpointer == nullptr) return Status::Ok();
  const CheckpointDesc& checkpoint = job_->desc().checkpoint();
  const bool steps_due = checkpoint.every_steps() > 0 &&
                         state_.step / checkpoint.every_steps() > last_checkpoint_step_ / checkpoint.every_steps();
  const bool epochs_due = epoch_ended && checkpoint.every_epochs() > 0 &&
                          state_.epoch / checkpoint.every_epochs() > last_checkpoint_epoch_ / checkpoint.every_epochs();
  const bool minutes_due =
      checkpoint.every_minutes() > 0 && SecondsOf(Clock::now() - last_checkpoint_) >= 60 * checkpoint.every_minutes();
  return steps_due || epochs_due || minutes_due ? SaveCheckpoint() : Status::Ok();
}

Status ReaderTrainer::SaveCheckpoint() {
  last_checkpoint_step_ = state_.step;
  last_checkpoint_epoch_ = state_.epoch;
  last_checkpoint_ = Clock::now();
  saved_at_stop_ = stop_.stop_requested();
  if (hooks_.checkpointer == nullptr) return Status::Ok();
  state_.readers.clear();
  for (const NamedReader& reader : readers_) state_.readers.push_back({reader.name, reader.holder->position()});
  state_.loop_variables.clear();
  HostView host_view;
  for (const NamedTensor& variable : loop_variables_) {
    if (variable.tensor->empty()) continue;
    std::string bytes;
    MR_ASSIGN(const Tensor* const shown, host_view.Of(*variable.tensor));
    AppendLoDTensor(*shown, &bytes);
    state_.loop_variables.push_back({variable.name, std::move(bytes)});
  }
  MR_ASSIGN(state_.operator_states, SaveOperatorStates({frame_.get()}));
  const auto start = Clock::now();
  MR_TRY(CheckToBeSaved(*job_, state_.step, &report_));
  MR_TRY(hooks_.checkpointer->Save(state_, false));
  report_.saved_step = state_.step;
  const double seconds = SecondsOf(Clock::now() - start);
  report_.checkpoint_seconds += seconds;
  pass_.pause_seconds += seconds;
  return Status::Ok();
}

void ReaderTrainer::Tick() {
  if (hooks_.reporter == nullptr || Clock::now() - last_tick_ < kTickEvery) return;
  last_tick_ = Clock::now();
  RunProgress progress;
  progress.epoch = state_.epoch;
  progress.epochs = std::max(job_->passes(), state_.epoch + 1);
  progress.pass_examples = pass_.examples;
  progress.step = state_.step;
  progress.pass_seconds = SecondsOf(last_tick_ - start_) - pass_.pause_seconds;
  progress.odd_labels = job_->label_monitor().of_losses().count + job_->label_monitor().of_measures().count;
  hooks_.reporter->OnTick(progress);
}

Status ReaderTrainer::FinishReport() {
  pass_.seconds = SecondsOf(Clock::now() - start_) - pass_.pause_seconds;
  pass_.run_seconds = pass_.seconds;
  if (pass_.batches == 0) return Status::Ok();
  MR_ASSIGN(pass_.fetched, FetchedVariables(*job_, *frame_));
  return Status::Ok();
}

}  // namespace millrace
