#include "trainer/training_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/caught.h"
#include "core/elapsed.h"
#include "core/wire.h"
#include "dataset/dataset_factory.h"
#include "report/batch_observers.h"
#include "table/counted_table.h"
#include "trainer/model_check.h"

namespace millrace {
namespace {

// Checkpoints that nobody asked for come where a stop would have to write for so many seconds.
constexpr double kShortSave = 0.2;
constexpr double kLeastBetween = 0.5;
// The first one, behind which others have changes alone, comes once the run has gone on for as long as it takes to
// write, if that is not too long to wait for.
constexpr double kLongestFirst = 10;
// Others come where no worker has a batch to train, after so many times the seconds that they take,
constexpr double kTimesOfIdle = 3;
// or so rarely that they cost a hundredth.
constexpr double kTimesOfBusy = 100;
// A stop saves what takes no longer than this, and what was trained for longer than saving it takes, or than so many
// seconds.
constexpr double kLongSave = 0.7;
constexpr double kMostUnsaved = 10;

/// What those that wait for the rank that leads are told.
enum class Told : uint8_t {
  kEvaluate,  ///< all measure their share
  kIsOver,    ///< what they wait for
};

/// `failure`, with a line that names the checkpoint of `step`, or says why (`saved`) it was not written. `of_files`:
/// the job compares its input files when it goes on.
Status NameKeptCheckpoint(const Status& failure, const Status& saved, int64_t step, bool of_files) {
  std::string text = failure.message() + "\n";
  if (!saved.ok()) return {failure.code(), text + saved.message()};
  text += "what was trained before is kept: --resume=auto goes on from step " + std::to_string(step);
  // Of an input file that is gone, the list of files is no longer what the checkpoint knows.
  if (of_files && failure.code() == StatusCode::kNotFound) {
    text += " once the file is there again, as it was; without it, only --resume=never trains";
  } else if (of_files) {
    text += "; once an input file is mended, with --set checkpoint.accept_changed_files=true";
  }
  return {failure.code(), std::move(text)};
}

}  // namespace

Result<std::unique_ptr<TrainingRun>> TrainingRun::Create(JobSession& session, TrainerHooks hooks) {
  MR_ASSIGN(QualityWatch watch, QualityWatch::Create(session.job()));
  return std::unique_ptr<TrainingRun>(new TrainingRun(session, std::move(hooks), std::move(watch)));
}

Result<RunReport> TrainingRun::Run(RunWorkers& workers, const std::stop_token& stop) {
  workers_ = &workers;
  asked_to_stop_ = stop;
  std::optional<std::stop_callback<std::function<void()>>> alone;
  if (job_->is_dist() && session_->leads()) alone.emplace(stop, [this] { StopAll(); });
  const std::stop_token token = job_->is_dist() ? all_stop_.get_token() : stop;
  Status ended = Caught("training", [&] { return TrainAndEvaluate(token); });
  if (hooks_.reached != nullptr) {
    *hooks_.reached = state_;
    // A failure comes behind the last boundary at which the state was brought up to date.
    if (!ended.ok()) {
      hooks_.reached->step = progress_.steps_done;
      hooks_.reached->examples = progress_.examples;
    }
  }
  MR_TRY(std::move(ended));
  report_.state = state_;
  return report_;
}

void TrainingRun::Begin() {
  state_.metric_totals = job_->metrics().NewTotals();
  if (is_resumed()) state_ = *hooks_.resume;
  progress_.steps_started = state_.step;
  progress_.steps_done = state_.step;
  progress_.examples = state_.examples;
  last_checkpoint_step_ = report_.saved_step = state_.step;
  last_checkpoint_epoch_ = state_.epoch;
  last_checkpoint_ = Clock::now();
  if (hooks_.checkpointer != nullptr)
    hooks_.checkpointer->SecondsToSave();  // looks at the variables while nobody trains
  report_.stopped_early = watch_.ShouldStop(state_);
}

Status TrainingRun::TrainAndEvaluate(const std::stop_token& stop) {
  Begin();
  if (session_->has_evaluations()) {
    Result<std::unique_ptr<Evaluator>> evaluator = Evaluator::Create(*session_);
    MR_TRY(session_->ranks().Agree(evaluator.status()));
    evaluator_ = std::move(evaluator).value();
  }
  MR_TRY(workers_->Train(stop));
  return Together([&] { return EvaluateOnce(stop); });
}

Status TrainingRun::Together(const std::function<Status()>& work) {
  RankGroup& ranks = session_->ranks();
  Status done;
  std::string bytes;
  if (ranks.leads()) {
    done = Caught("training", work);
    WireWriter out(&bytes);
    out.Put(Told::kIsOver);
    out.Put(report_.interrupted);
    out.Put(report_.stopped_early);
    out.Put(state_.epoch);
    MR_TRY(ranks.FromLeader(&bytes));
  } else {
    MR_TRY(HelpUntilTold(&bytes));
  }
  WireReader in(bytes);
  in.Get<Told>();
  report_.interrupted = in.Get<bool>();
  report_.stopped_early = in.Get<bool>();
  const auto epoch = in.Get<int64_t>();
  if (epoch > state_.epoch) {
    state_.trained.Clear();
    state_.metric_totals = job_->metrics().NewTotals();
    state_.metric_window.reset();
  }
  state_.epoch = epoch;
  return ranks.Agree(done);
}

Status TrainingRun::HelpUntilTold(std::string* bytes) {
  while (true) {
    MR_TRY(session_->ranks().FromLeader(bytes));
    if (WireReader(*bytes).Get<Told>() == Told::kIsOver) return Status::Ok();
    // The one that leads says what comes of it.
    const Status helped = Caught("an evaluation", [&] { return evaluator_->Run(state_, asked_to_stop_).status(); });
    if (helped.code() == StatusCode::kCancelled) StopAll();
  }
}

Status TrainingRun::EvaluateOnce(const std::stop_token& stop) {
  // A run that was over when it was resumed says how good its model is, too.
  if (evaluator_ == nullptr || !report_.passes.empty() || report_.interrupted) return Status::Ok();
  MR_TRY(Evaluate(stop));
  report_.interrupted = stop.stop_requested();
  return Status::Ok();
}

Status TrainingRun::GoOn(const std::stop_token& stop) {
  return Together([&] { return DoGoOn(stop); });
}

Status TrainingRun::DoGoOn(const std::stop_token& stop) {
  if (report_.interrupted) return Status::Ok();
  if (is_resumed() && hooks_.on_resumed != nullptr) MR_TRY(hooks_.on_resumed());
  if (hooks_.pass_saver != nullptr && !state_.save_failures.empty()) {
    const size_t failed = state_.save_failures.size();
    MR_TRY(hooks_.pass_saver->Retry(&state_.save_failures, stop));
    if (state_.save_failures.size() < failed) MR_TRY(SaveCheckpoint());
  }
  MR_TRY(CatchUpEvaluation(stop));
  return ShrinkTables();
}

Status TrainingRun::CatchUpEvaluation(const std::stop_token& stop) {
  const bool is_due = evaluator_ != nullptr && is_resumed() &&
                      Crossed(job_->desc().eval().every_steps(), state_.last_eval_step, state_.step);
  if (!is_due || state_.trained.empty()) return Status::Ok();
  MR_TRY(Evaluate(stop));
  if (stop.stop_requested()) report_.interrupted = true;
  return is_ending() || last_eval_was_best_ ? SaveCheckpoint() : Status::Ok();
}

void TrainingRun::StartPass() {
  pass_ = {};
  pass_.epoch = state_.epoch;
  pass_start_ = Clock::now();
  progress_.pass_examples = 0;
  report_.finite_step = -1;
}

bool TrainingRun::IsTimeForCheckpoint(bool is_busy) {
  const int64_t steps = progress_.steps_started;
  is_busy |= std::exchange(steps_seen_, steps) != steps;
  if (hooks_.checkpointer == nullptr) return false;
  const double minutes = job_->desc().checkpoint().every_minutes();
  const double seconds = SecondsSince(last_checkpoint_);
  if (minutes > 0 && seconds >= 60 * minutes) return true;
  if (job_->is_dist() || seconds < kLeastBetween || progress_.steps_done == last_checkpoint_step_) return false;
  const double saving = hooks_.checkpointer->SecondsToSave();
  double times = is_busy ? kTimesOfBusy : kTimesOfIdle;
  if (report_.saved_step == 0 && saving < kLongestFirst) times = 1;
  is_between_due_ = saving > kShortSave && seconds > saving * times;
  return is_between_due_;
}

bool TrainingRun::IsSoonerTrained() {
  if (!asked_to_stop_.stop_requested() || job_->is_dist() || hooks_.checkpointer == nullptr) return false;
  const double saving = hooks_.checkpointer->SecondsToSave();
  const double seconds = SecondsSince(last_checkpoint_);
  if (saving <= kLongSave || seconds >= std::min(saving, kMostUnsaved)) return false;
  report_.unsaved_seconds = seconds;
  report_.seconds_to_save = saving;
  return true;
}

bool TrainingRun::SavesCheckpoints() const {
  return session_->leads() ? hooks_.checkpointer != nullptr : !job_->output_dir().empty();
}

Status TrainingRun::AtBoundary(const std::stop_token& stop) {
  return Together([&] { return DoAtBoundary(stop); });
}

Status TrainingRun::DoAtBoundary(const std::stop_token& stop) {
  const CheckpointDesc& checkpoint = job_->desc().checkpoint();
  if (evaluator_ != nullptr && !stop.stop_requested() &&
      Crossed(job_->desc().eval().every_steps(), state_.last_eval_step, state_.step)) {
    if (Status evaluated = Evaluate(stop); !evaluated.ok()) return DoCheckpointAfterFailure(evaluated, false);
  }
  if (stop.stop_requested()) report_.interrupted = true;
  const bool is_asked_for = is_ending() || last_eval_was_best_ ||
                            Crossed(checkpoint.every_steps(), last_checkpoint_step_, state_.step) ||
                            Crossed(checkpoint.every_epochs(), last_checkpoint_epoch_, state_.epoch);
  if (is_asked_for) is_between_due_ = false;
  if (!is_asked_for && !is_between_due_ && !IsTimeForCheckpoint(true)) return Status::Ok();
  MR_TRY(SaveCheckpoint(true));
  EndWhereSaved(stop);
  return Status::Ok();
}

Status TrainingRun::EndPass(const std::stop_token& stop) {
  return Together([&] {
    MR_TRY(DoEndPass(stop));
    return ShrinkTables();
  });
}

Status TrainingRun::ShrinkTables() {
  // What comes before it may be cut short and be done again by a run that goes on; this is part of the pass to come.
  const bool is_due = job_->is_incremental() && job_->desc().incremental().shrink() && !is_ending() &&
                      state_.epoch > state_.shrunk_epoch && state_.epoch < job_->passes();
  if (!is_due) return Status::Ok();
  for (const TableDesc& desc : job_->model().tables) {
    if (!desc.has_accessor()) continue;
    SparseTable* const table = session_->root().Find(desc.name())->Get<std::unique_ptr<SparseTable>>().get();
    CountedTable* const counted = AsCounted(table);
    if (counted == nullptr) {
      return InvalidConfig("incremental.shrink: table \"" + desc.name() + "\" is of class_name \"" + desc.class_name() +
                           "\", which deletes no rows; leave class_name or shrink out");
    }
    MR_ASSIGN(const ShrinkReport shrunk, counted->Shrink(std::max(1, job_->desc().thread_num())));
    if (hooks_.on_shrunk == nullptr) continue;
    MR_TRY(hooks_.on_shrunk({desc.name(), job_->PassName(state_.epoch), shrunk.rows, shrunk.deleted}));
  }
  state_.shrunk_epoch = state_.epoch;
  return Status::Ok();
}

Status TrainingRun::DoEndPass(const std::stop_token& stop) {
  if (pass_.data.lines > state_.data.lines) state_.data = pass_.data;
  session_->AddTrainedZones(pass_.data.names);
  session_->AddTrainedZones(report_.load.names);
  // What a stop before the end goes back to. Nothing from here on looks at the metrics of the pass, which may be large.
  MetricTotals totals = std::exchange(state_.metric_totals, job_->metrics().NewTotals());
  std::optional<MetricTotals> window = std::exchange(state_.metric_window, std::nullopt);
  RunState trained = state_;
  trained.metric_totals = std::move(totals);
  trained.metric_window = std::move(window);
  ++state_.epoch;
  state_.trained.Clear();
  if (!job_->feeds_itself()) state_.printed_batches = 0;
  state_.bad_lines.clear();
  const bool last = state_.epoch == job_->passes();
  // A day without rows is one whose log has not come: were it done, the log would never be trained. The one that leads
  // knows the rows of all.
  const bool is_empty_day = job_->is_incremental() && session_->leads() && pass_.examples == 0 &&
                            trained.trained.empty() && !stop.stop_requested();
  if (is_empty_day || (state_.examples == 0 && !job_->feeds_itself())) {
    Status nothing = NothingTo("train on", report_.load.files > 0 ? report_.load : pass_.data, job_->desc().data_desc(),
                               session_->dataset().files());
    const DataFeedDesc& feed = job_->desc().data_desc();
    std::string why = nothing.message();
    if (pass_.data.counters.contains("of_other_times")) why += RowsNotTrained(job_->desc());
    if (feed.drop_last()) {
      why += "; drop_last leaves out a batch of fewer than " + std::to_string(feed.batch_size()) + " rows";
    }
    if (job_->is_incremental()) {
      why = "pass \"" + job_->PassName(trained.epoch) + "\": " + why +
            "; start again when its log is there, or take the pass out of the job";
    }
    return BadData(why);
  }
  const auto due = [&](int every) { return Crossed(every, trained.epoch, state_.epoch); };
  // One that every_steps asked for after the very last batch stands for it: the same again would use up patience.
  const bool is_measured = !report_.evaluations.empty() && report_.evaluations.back().step == state_.step;
  if (evaluator_ != nullptr && !is_measured && (last || due(job_->desc().eval().every_epochs()))) {
    const size_t evaluations = report_.evaluations.size();
    if (Status evaluated = Evaluate(stop); !evaluated.ok()) {
      state_ = std::move(trained);
      return DoCheckpointAfterFailure(evaluated, false);
    }
    if (report_.evaluations.size() == evaluations) {
      // Cut short. The checkpoint stands before the end of the epoch, so that a resumed run evaluates first.
      state_ = std::move(trained);
      report_.interrupted = true;
      return SaveCheckpoint(true);
    }
  }
  state_.last_metrics = pass_.metrics;
  if (hooks_.pass_saver != nullptr) {
    MR_TRY(workers_->MergePrivateVars());
    MR_TRY(CheckToBeSaved(*session_, state_.step, &report_));
    Status saved = hooks_.pass_saver->SavePass(last || report_.stopped_early, stop, &state_);
    if (saved.code() == StatusCode::kCancelled) {
      // As with an evaluation: the run that goes on does it again, and evaluates again to know what was best.
      state_ = std::move(trained);
      last_eval_was_best_ = false;
      report_.stopped_early = false;
      report_.interrupted = true;
      return SaveCheckpoint();
    }
    MR_TRY(std::move(saved));
  }
  if (stop.stop_requested()) report_.interrupted = !last;
  const bool is_due = is_ending() || last_eval_was_best_ || due(job_->desc().checkpoint().every_epochs());
  if (!is_due) return Status::Ok();
  // The model of a day is there, and is not to be made twice.
  MR_TRY(SaveCheckpoint(!last && hooks_.pass_saver == nullptr));
  if (!last) EndWhereSaved(stop);
  return Status::Ok();
}

void TrainingRun::EndWhereSaved(const std::stop_token& stop) {
  if (hooks_.checkpointer != nullptr && stop.stop_requested()) report_.interrupted = true;
}

Status TrainingRun::Evaluate(const std::stop_token& stop) {
  MR_TRY(workers_->MergePrivateVars());
  Result<EvalReport> result = Caught("an evaluation", [&] { return Measure(stop); });
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
  session_->SetCalibrations(report);
  session_->SetSlotShares(report);
  report_.evaluations.push_back(report);
  return Status::Ok();
}

Result<EvalReport> TrainingRun::Measure(const std::stop_token& stop) {
  std::string bytes;
  WireWriter(&bytes).Put(Told::kEvaluate);
  MR_TRY(session_->ranks().FromLeader(&bytes));
  Result<EvalReport> report = evaluator_->Run(state_, stop);
  if (report.status().code() == StatusCode::kCancelled) StopAll();
  return report;
}

Status TrainingRun::SaveCheckpoint(bool may_leave_out) {
  const bool can_be_trained = may_leave_out && !last_eval_was_best_;
  last_checkpoint_step_ = state_.step;
  last_checkpoint_epoch_ = state_.epoch;
  if (hooks_.checkpointer != nullptr && !(can_be_trained && IsSoonerTrained())) {
    MR_TRY(workers_->MergePrivateVars());
    MR_TRY(workers_->SaveStates(&state_));
    const auto start = Clock::now();
    Status saved = TrySaving();
    if (saved.code() == StatusCode::kCancelled && asked_to_stop_.stop_requested()) {
      report_.interrupted = true;
      saved = can_be_trained && IsSoonerTrained() ? Status::Ok() : TrySaving();
    }
    MR_TRY(saved);
    report_.checkpoint_seconds += SecondsSince(start);
  }
  last_checkpoint_ = Clock::now();
  is_between_due_ = false;
  return Status::Ok();
}

Status TrainingRun::TrySaving() {
  const auto check = [this] { return CheckToBeSaved(*session_, state_.step, &report_); };
  MR_TRY(hooks_.checkpointer->Save(state_, {last_eval_was_best_, is_between_due_}, check));
  last_eval_was_best_ = false;
  report_.saved_step = state_.step;
  return Status::Ok();
}

Status TrainingRun::SaveAtStop() {
  return Together([this] { return state_.step == last_checkpoint_step_ ? Status::Ok() : SaveCheckpoint(); });
}

Status TrainingRun::CheckpointAfterFailure(const Status& failure, bool of_files) {
  const Status named = Together([&] { return DoCheckpointAfterFailure(failure, of_files); });
  // Others know whose failure it was, and leave what is kept to the one that leads.
  return session_->leads() ? named : failure;
}

Status TrainingRun::DoCheckpointAfterFailure(const Status& failure, bool of_files) {
  if (hooks_.checkpointer == nullptr || state_.step == last_checkpoint_step_) return failure;
  const Status saved = Caught("a checkpoint", [this] { return SaveCheckpoint(); });
  return NameKeptCheckpoint(failure, saved, state_.step, of_files);
}

Status TrainingRun::NameLastCheckpoint(const Status& ended) const {
  return ended.ok() ? ended : NameCheckpoint(ended, report_.saved_step);
}

Status TrainingRun::ReportPass() {
  pass_.seconds = PassSeconds();
  MR_TRY(Together([this] { return hooks_.reporter == nullptr ? Status::Ok() : hooks_.reporter->OnPass(pass_); }));
  report_.passes.push_back(pass_);
  return Status::Ok();
}

Status TrainingRun::ReportPoint(int64_t from, std::vector<FetchLine::Value> fetched) {
  return Together([&] {
    // A run that goes on behind the last batch of a pass trains none of it.
    const bool is_empty = pass_.batches == 0 && state_.trained.empty();
    if (is_empty || hooks_.reporter == nullptr || !PrintsNothing(*job_, from, state_.printed_batches))
      return Status::Ok();
    return hooks_.reporter->OnPoint(PointOfEpoch(*job_, state_, pass_, std::move(fetched)));
  });
}

double TrainingRun::PassSeconds() const { return SecondsSince(pass_start_) - pass_.pause_seconds; }

void TrainingRun::Tick() {
  if (hooks_.reporter == nullptr) return;
  RunProgress progress;
  progress.epoch = state_.epoch;
  progress.epochs = std::max(job_->passes(), state_.epoch + 1);
  progress.pass_examples = progress_.pass_examples.load();
  progress.step = progress_.steps_done.load();
  progress.pass_seconds = PassSeconds();
  progress.odd_labels = session_->label_monitor().of_losses().count + session_->label_monitor().of_measures().count;
  hooks_.reporter->OnTick(progress);
}

}  // namespace millrace
