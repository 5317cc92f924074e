#include "checkpoint/job_checkpointer.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "config/feed_names.h"
#include "core/contained_file.h"
#include "core/delayed_stop.h"
#include "core/elapsed.h"
#include "core/harmless_text.h"
#include "core/name_list.h"
#include "core/numbers.h"
#include "core/version.h"
#include "job/input_fingerprint.h"
#include "job/input_state.h"
#include "program/rate_variables.h"
#include "report/progress_line.h"
#include "report/save_progress.h"
#include "runtime/transfer.h"
#include "runtime/variable_store.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kLookMayTake{300};
constexpr std::chrono::milliseconds kShortLook{1000};
constexpr std::chrono::milliseconds kBetweenLines{100};
/// A checkpoint that may take longer than this is given up at a stop: what changed alone comes sooner.
constexpr double kMayFinish = 0.4;
/// Large tensors are looked at with so many bytes a second, about.
constexpr double kLookBytesASecond = 5e9;
/// Smaller saves say more about the disk's latency than about its rate.
constexpr uint64_t kBytesToMeasure = uint64_t{64} << 20;

PassStats ToStats(const StoredData& stored) {
  PassStats data;
  data.files = stored.files();
  data.bytes = stored.bytes();
  data.lines = stored.lines();
  data.rows = stored.rows();
  data.bad_lines = stored.bad_lines();
  data.first_bad_lines.assign(stored.first_bad_line().begin(), stored.first_bad_line().end());
  data.quarantine_path = stored.quarantine_path();
  for (const StoredCounter& counter : stored.counters()) data.counters[counter.key()] = counter.value();
  return data;
}

void Store(const PassStats& data, StoredData* stored) {
  stored->set_files(data.files);
  stored->set_bytes(data.bytes);
  stored->set_lines(data.lines);
  stored->set_rows(data.rows);
  stored->set_bad_lines(data.bad_lines);
  for (const std::string& line : data.first_bad_lines) stored->add_first_bad_line(line);
  stored->set_quarantine_path(data.quarantine_path);
  for (const auto& [kind, times] : data.counters) {
    StoredCounter* counter = stored->add_counters();
    counter->set_key(kind);
    counter->set_value(times);
  }
}

Result<RunState> ToState(const FoundCheckpoint& found) {
  const CheckpointManifest& manifest = found.manifest;
  RunState state;
  state.epoch = manifest.epoch();
  state.step = manifest.step();
  state.examples = manifest.examples();
  MR_ASSIGN(state.trained, ConsumedRanges::FromText(manifest.ledger()));
  state.has_best = manifest.early_stopping().has_best();
  state.best_metric = manifest.early_stopping().best();
  state.evaluations_since_best = manifest.early_stopping().since();
  state.last_eval_step = manifest.evaluated_step();
  state.input_rows = manifest.input_rows();
  state.input_streams = std::max(1, manifest.input_streams());
  state.printed_batches = manifest.printed_batches();
  state.shrunk_epoch = manifest.shrunk_epoch();
  for (const StoredReader& reader : manifest.reader()) {
    state.readers.push_back({reader.name(), {.resets = reader.resets(), .items = reader.items()}});
  }
  for (const StoredLoopVariable& variable : manifest.loop_variable()) {
    state.loop_variables.push_back({variable.name(), variable.tensor()});
  }
  for (const StoredOperatorState& stored : manifest.operator_state()) {
    state.operator_states.push_back({stored.name(), stored.frame(), stored.attributes(), stored.state()});
  }
  for (const StoredSaveFailure& failure : manifest.save_failure()) {
    state.save_failures.push_back({failure.pass(), failure.message()});
  }
  for (const StoredBadLines& lines : manifest.bad_lines()) {
    if (lines.count() > 0) state.bad_lines[lines.kind()] = lines.count();
  }
  state.data = ToStats(manifest.data());
  for (const StoredMetric& metric : manifest.last_metric()) {
    state.last_metrics.emplace_back(metric.name(), metric.value());
  }
  return state;
}

/// Where a run stands, for people, who count from 1: "in epoch 2", "after epoch 1".
std::string EpochOf(const RunState& state) {
  const bool is_within = !state.trained.empty() || !state.readers.empty() || state.epoch == 0;
  return (is_within ? "in epoch " : "after epoch ") + std::to_string(state.epoch + (is_within ? 1 : 0));
}

std::string JobText(const TrainerDesc& desc) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(desc, &text);
  return text;
}

std::string WasAndIs(const ChangedField& field) {
  return field.path + " was " + field.before + " and is now " + field.now;
}

/// The job that wrote a checkpoint; nullopt when the checkpoint does not say so in words of this version.
std::optional<TrainerDesc> JobOf(const CheckpointManifest& manifest) {
  TrainerDesc desc;
  if (!manifest.has_job() || !google::protobuf::TextFormat::ParseFromString(manifest.job(), &desc)) return std::nullopt;
  return desc;
}

/// What checkpoints say whose runs draw lines by DrawnBy::kName; earlier ones say nothing.
constexpr std::string_view kDrawnByName = "lines are drawn by: name of the file\n";

/// Whether the job trains on lines that are drawn.
bool DrawsLines(const TrainerDesc& desc) {
  const auto& sets = desc.eval().set();
  return desc.model().has_downsample() || desc.dataset().sample_rate() < 1 ||
         std::any_of(sets.begin(), sets.end(), [](const EvalDesc::Set& set) { return set.has_share(); });
}

/// By what evaluations are told apart; empty: they are not.
std::string WatchedMetric(const TrainerDesc& desc) {
  const EvalDesc& eval = desc.eval();
  const std::string metric = eval.has_early_stopping() ? eval.early_stopping().metric() : desc.checkpoint().keep_best();
  return metric.empty() || eval.watch().empty() ? metric : metric + " of " + eval.watch();
}

/// What says which rows the watched set has: jobs in which it is the same measure the same rows.
std::string WatchedRows(const TrainerDesc& desc) {
  const EvalDesc& eval = desc.eval();
  const int watched = WatchedSet(eval);
  TrainerDesc rows;
  if (watched < 0) {
    *rows.mutable_eval()->mutable_filelist() = eval.filelist();
    return rows.SerializeAsString();
  }
  const EvalDesc::Set& set = eval.set(watched);
  *rows.mutable_eval()->add_set() = set;
  if (set.filelist_size() == 0) *rows.mutable_filelist() = desc.filelist();
  if (set.has_share()) {
    // Shares lie side by side, and none has rows behind the first moment.
    for (int i = 0; i < eval.set_size(); ++i) {
      if (eval.set(i).has_since() || (eval.set(i).has_share() && i < watched))
        *rows.mutable_eval()->add_set() = eval.set(i);
    }
  }
  for (EvalDesc::Set& named : *rows.mutable_eval()->mutable_set()) named.clear_name();
  return rows.SerializeAsString();
}

/// The sets of `now` that may have rows of the training files which `before` trained.
std::vector<std::string> SetsOfTrainedRows(const TrainerDesc& before, const TrainerDesc& now) {
  // Shares lie side by side, from the same row on.
  double held = 1e-9;
  std::set<std::string> moments;
  for (const EvalDesc::Set& set : before.eval().set()) {
    held += set.share();
    if (set.has_since()) moments.insert(set.since().SerializeAsString());
  }
  double end = 0;
  std::vector<std::string> names;
  for (const EvalDesc::Set& set : now.eval().set()) {
    end += set.share();
    const bool is_behind = set.has_share() && end > held;
    if (is_behind || (set.has_since() && !moments.contains(set.since().SerializeAsString())))
      names.push_back(set.name());
  }
  return names;
}

bool IsOf(const std::string& path, std::string_view field) {
  return path.starts_with(field) && (path.size() == field.size() || path[field.size()] == '.');
}

/// The value of a rate, for people.
Result<std::string> RateText(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32 || tensor.numel() != 1) return "(" + tensor.dims().ToString() + ")";
  HostView host_view;
  MR_ASSIGN(const Tensor* const shown, host_view.Of(tensor));
  return GeneralNumber(static_cast<double>(shown->data<float>()[0]));
}

/// What of a run's state the manifest holds beside the input's files.
void StoreProgress(const RunState& state, CheckpointManifest* to) {
  CheckpointManifest& manifest = *to;
  manifest.set_input_rows(state.input_rows);
  manifest.set_printed_batches(state.printed_batches);
  manifest.set_evaluated_step(state.last_eval_step);
  if (state.has_best) manifest.mutable_early_stopping()->set_best(state.best_metric);
  if (state.evaluations_since_best > 0) {
    manifest.mutable_early_stopping()->set_since(static_cast<int32_t>(state.evaluations_since_best));
  }
  for (const ReaderState& reader : state.readers) {
    StoredReader& stored = *manifest.add_reader();
    stored.set_name(reader.name);
    stored.set_resets(reader.position.resets);
    stored.set_items(reader.position.items);
  }
  for (const LoopVariable& variable : state.loop_variables) {
    StoredLoopVariable& stored = *manifest.add_loop_variable();
    stored.set_name(variable.name);
    stored.set_tensor(variable.bytes);
  }
  for (const OperatorState& operator_state : state.operator_states) {
    StoredOperatorState& stored = *manifest.add_operator_state();
    stored.set_name(operator_state.name);
    stored.set_frame(operator_state.frame);
    stored.set_attributes(operator_state.attributes);
    stored.set_state(operator_state.bytes);
  }
  for (const SaveFailure& failure : state.save_failures) {
    StoredSaveFailure& stored = *manifest.add_save_failure();
    stored.set_pass(failure.pass);
    stored.set_message(failure.message);
  }
  for (const auto& [kind, count] : state.bad_lines) {
    StoredBadLines& stored = *manifest.add_bad_lines();
    stored.set_kind(kind);
    stored.set_count(count);
  }
  if (state.data.lines > 0) Store(state.data, manifest.mutable_data());
  for (const auto& [name, value] : state.last_metrics) {
    StoredMetric& stored = *manifest.add_last_metric();
    stored.set_name(name);
    stored.set_value(value);
  }
}

using Files = google::protobuf::RepeatedPtrField<std::string>;

/// The first entries of `list` that `other` lacks; empty if it lacks none.
std::string EntriesMissingIn(const Files& other, const Files& list) {
  const std::set<std::string> known(other.begin(), other.end());
  std::vector<std::string> missing;
  for (const std::string& entry : list) {
    if (!known.contains(entry)) missing.push_back(Harmless(entry));
  }
  return FirstNames(missing);
}

/// How a list of files differs from what it was.
std::string DifferenceOf(const Files& before, const Files& now) {
  const std::string gone = EntriesMissingIn(now, before);
  const std::string added = EntriesMissingIn(before, now);
  if (gone.empty() && added.empty()) return "in another order";
  return (gone.empty() ? "" : "without " + gone) + (gone.empty() || added.empty() ? "" : ", ") +
         (added.empty() ? "" : "with " + added + " added");
}

}  // namespace

Result<std::unique_ptr<JobCheckpointer>> JobCheckpointer::Create(JobSession& session, std::stop_token stop,
                                                                 std::FILE* terminal) {
  const CompiledJob& job = session.job();
  MR_ASSIGN(CheckpointStore store, CheckpointStore::Create(job.output_dir() + "/checkpoints",
                                                           job.desc().checkpoint().keep(), job.threads_at_rest()));
  std::unique_ptr<JobCheckpointer> checkpointer(
      new JobCheckpointer(session, std::move(store), NewRunId(), std::move(stop), terminal));
  if (!job.feeds_itself() && !job.desc().infer())
    MR_TRY(checkpointer->LookAtFiles(job.FirstPass(), checkpointer->stop_));
  return checkpointer;
}

std::unique_ptr<JobCheckpointer> JobCheckpointer::Follow(JobSession& session, std::stop_token stop,
                                                         std::FILE* terminal) {
  const CompiledJob& job = session.job();
  CheckpointStore store = CheckpointStore::Open(job.output_dir() + "/checkpoints", job.workers());
  return std::unique_ptr<JobCheckpointer>(
      new JobCheckpointer(session, std::move(store), NewRunId(), std::move(stop), terminal));
}

Result<std::optional<FoundCheckpoint>> JobCheckpointer::FindCheckpoint(const std::string& resume) {
  if (resume == "never") return std::optional<FoundCheckpoint>();
  const CheckpointFits fits = [this](const CheckpointManifest& manifest) { return Fits(manifest); };
  SaveProgress line("a checkpoint is being checked", 0, {}, terminal_);
  const LongWork work{stop_, [&line](uint64_t bytes) { line.Add(bytes); },
                      [&line](uint64_t more) { line.Expect(more); }};
  // Rank 0 has checked the files of tables when it names the checkpoint to the others.
  const CheckedFiles checked = session_->leads() ? CheckedFiles::kAll : CheckedFiles::kButThoseOfTables;
  if (resume == "auto") {
    MR_ASSIGN(std::optional<FoundCheckpoint> newest, store_.FindNewest(fits, &notes_, work));
    if (!newest.has_value()) notes_.push_back("no checkpoint in \"" + store_.folder() + "\": starting anew");
    std::error_code none;
    const std::string best = std::filesystem::read_symlink(store_.folder() + "/best", none).string();
    if (job_->desc().infer() && newest.has_value() && !best.empty() && !newest->folder.ends_with("/" + best)) {
      notes_.push_back("the last parameters are taken; those of the best evaluation, \"" + best +
                       "\", which model/ has as a rule, are taken with --model=best");
    }
    return newest;
  }
  if (resume == "best" && job_->desc().infer()) {
    const std::string best = store_.folder() + "/best";
    if (!MayBeThere(best)) {
      return InvalidConfig("--model=best: there is no \"" + best +
                           "\": a training with eval.early_stopping or checkpoint.keep_best keeps it");
    }
    MR_ASSIGN(FoundCheckpoint found, ReadCheckpoint(best, fits, checked, work));
    return std::optional<FoundCheckpoint>(std::move(found));
  }
  if (std::error_code unknown; !std::filesystem::is_directory(resume, unknown)) {
    if (!session_->leads()) {
      return InvalidConfig("does not see \"" + resume +
                           "\", the checkpoint that rank 0 goes on from: ranks read it on a file system that all of "
                           "them see; copy it there, and give that folder as --output_dir");
    }
    return NoCheckpoint(resume);
  }
  if (!MayBeThere(resume + "/MANIFEST")) {
    return NoCheckpoint(resume);
  }
  MR_ASSIGN(FoundCheckpoint found, ReadCheckpoint(resume, fits, checked, work));
  if (!job_->desc().infer() && store_.HasLaterThan(found.manifest.step())) {
    notes_.push_back("the checkpoints of later steps in \"" + store_.folder() +
                     "\" are left behind: the next one that is written takes their place");
  }
  return std::optional<FoundCheckpoint>(std::move(found));
}

Result<std::string> JobCheckpointer::Find(const std::string& resume) {
  MR_ASSIGN(found_, FindCheckpoint(resume));
  return found_.has_value() ? found_->folder : std::string();
}

Result<std::optional<RunState>> JobCheckpointer::Resume() {
  const std::optional<FoundCheckpoint> found = std::exchange(found_, std::nullopt);
  if (!found.has_value()) return StartAnew();
  const CheckpointManifest& manifest = found->manifest;
  if (!job_->desc().infer()) {
    MR_TRY(DrawLinesAsIn(manifest));
    MR_TRY(CheckInput(manifest).Context("checkpoint \"" + found->folder + "\" does not fit this job"));
  }
  std::string_view metrics = found->metrics;
  std::optional<MetricTotals> totals = job_->metrics().TakeBytes(&metrics);
  std::optional<MetricTotals> window;
  if (totals.has_value() && !metrics.empty()) {
    window = job_->metrics().FromBytes(metrics);
    if (!window.has_value()) totals.reset();
  }
  if (!totals.has_value()) {
    // Between epochs nothing was counted yet. Older checkpoints have no sums of the loss, and those that do not tell
    // their job no counts of rows that are not finite.
    if (!job_->desc().infer() && !manifest.ledger().empty()) {
      notes_.push_back((manifest.has_job() ? "the metrics of the job have changed, or an earlier version counted them"
                                           : "an earlier version wrote what the metrics had counted") +
                       (": those of epoch " + std::to_string(manifest.epoch() + 1)) + " count from here");
    }
    totals = job_->metrics().NewTotals();
  }
  std::vector<std::string> rates;
  MR_TRY(RestoreState(*found, &rates, stop_));
  MR_ASSIGN(RunState state, ToState(*found));
  state.metric_totals = *std::move(totals);
  state.metric_window = std::move(window);
  run_id_ = manifest.run_id();
  if (!job_->desc().infer() && job_->desc().checkpoint().full_every() > 1) {
    MR_TRY(BeginChanges({manifest.variable().begin(), manifest.variable().end()}, session_->root(), true));
    MR_TRY(store_.ResumeFrom(*found, session_->root()));
  }
  if (job_->desc().infer()) {
    notes_.push_back("parameters of \"" + found->folder + "\": " + EpochOf(state) + ", step " +
                     std::to_string(state.step) + ", " + std::to_string(state.examples) + " examples");
    return std::optional<RunState>(std::move(state));
  }
  notes_.push_back("going on from \"" + found->folder + "\": " + EpochOf(state) + ", step " +
                   std::to_string(state.step) + ", " + std::to_string(state.examples) + " examples");
  notes_.insert(notes_.end(), rates.begin(), rates.end());
  NoteOrderOfReaders(state);
  TakeChanges(manifest, &state);
  std::error_code none;
  const auto folder = std::filesystem::canonical(found->folder, none).parent_path();
  if (state.has_best && folder != std::filesystem::canonical(store_.folder(), none)) {
    ForgetBest(
        "the best model of the earlier run stays in its folder: the best one of this run is looked for from here on",
        &state);
  }
  return std::optional<RunState>(std::move(state));
}

Result<std::string> JobCheckpointer::FindBest(const RunState& state, const std::stop_token& stop) {
  MR_ASSIGN(const std::optional<FoundCheckpoint> found,
            store_.FindBest([this](const CheckpointManifest& manifest) { return Fits(manifest); }, {stop}));
  const bool is_ours = found.has_value() && found->manifest.run_id() == run_id_ &&
                       found->manifest.early_stopping().best() == state.best_metric;
  if (is_ours) return found->folder;
  notes_.push_back("the checkpoint of the best evaluation is not in \"" + store_.folder() +
                   "\": the last model is kept instead");
  return std::string();
}

Result<RunState> JobCheckpointer::Restore(const std::string& folder, const std::stop_token& stop) {
  size_.reset();
  MR_ASSIGN(const FoundCheckpoint found,
            ReadCheckpoint(folder, [this](const CheckpointManifest& manifest) { return Fits(manifest); },
                           CheckedFiles::kButThoseOfTables, {stop}));
  MR_TRY(session_->InitParameters(stop));
  std::vector<std::string> ignored;
  MR_TRY(RestoreState(found, &ignored, stop));
  return ToState(found);
}

Result<std::optional<RunState>> JobCheckpointer::StartAnew() {
  if (!job_->desc().infer()) MR_TRY(store_.BeginRun(run_id_));
  return std::optional<RunState>();
}

std::string JobCheckpointer::Fingerprint() const {
  std::string text = InputFingerprint(job_->desc(), job_->schema());
  if (job_->feeds_itself()) text += ReaderFingerprint(job_->model().startup, job_->environment().ops);
  if (DrawsLines(job_->desc()) && !session_->draws_lines_as_before()) text += kDrawnByName;
  return text;
}

Status JobCheckpointer::DrawLinesAsIn(const CheckpointManifest& manifest) {
  const std::optional<TrainerDesc> before = JobOf(manifest);
  const bool drew = DrawsLines(job_->desc()) && (!before.has_value() || DrawsLines(*before));
  if (!drew || manifest.input_fingerprint().find(kDrawnByName) != std::string::npos) return Status::Ok();
  return session_->DrawLinesAsBefore(stop_);
}

Status JobCheckpointer::Fits(const CheckpointManifest& manifest) {
  const TrainerDesc& desc = job_->desc();
  std::string problems;
  const auto add = [&problems](const std::string& text) { problems += (problems.empty() ? "" : "\n") + text; };
  changes_.clear();
  const std::optional<TrainerDesc> before = JobOf(manifest);
  if (before.has_value()) {
    for (ChangedField& field : ChangedJobFields(*before, desc)) {
      // What features make of columns is what the model was trained on.
      const bool is_of_features = field.path == "data_desc.feature" || field.path.starts_with("data_desc.feature[");
      const bool matters = !desc.infer() || IsOf(field.path, "model") || is_of_features;
      if (field.may_change && !is_of_features) {
        changes_.push_back(std::move(field));
      } else if (matters) {
        add(WasAndIs(field));
        if (IsOf(field.path, "dist")) {
          add("a step of dist.update: SYNC takes a batch of each of micro_batches streams, so a run that began so goes "
              "on with as many, and no other goes on so");
        }
      }
    }
  } else if (!desc.infer() && manifest.seed() != desc.seed()) {
    add("seed was " + std::to_string(manifest.seed()) + " and is now " + std::to_string(desc.seed()));
  }
  const bool by_fields = !problems.empty();
  std::set<std::string> settings = RateVariables(job_->model().main);
  settings.insert(manifest.rate().begin(), manifest.rate().end());
  const Status variables =
      CompareVariables(job_->model().main, {manifest.variable().begin(), manifest.variable().end()}, settings);
  if (!variables.ok()) add(variables.message());
  const Status startup = CompareStartup(manifest, settings);
  if (!startup.ok()) add(startup.message());
  if (problems.empty()) return Status::Ok();
  if (by_fields) {
    problems +=
        "\na run that goes on can change rates, schedules, penalties, clipping and metrics of a model, and epochs, "
        "evaluation, checkpoints and output: set what differs as it was, or start anew: --resume=never";
  }
  return InvalidConfig(problems);
}

Status JobCheckpointer::CompareStartup(const CheckpointManifest& manifest,
                                       const std::set<std::string>& settings) const {
  const TrainerDesc& desc = job_->desc();
  const bool runs_it = desc.has_program() && (!desc.program().has_init_dir() || job_->feeds_itself());
  if (!runs_it || !manifest.has_startup() || desc.infer()) return Status::Ok();
  return CompareFingerprints(manifest.startup(),
                             StartupFingerprint(job_->model().startup, settings, job_->environment().ops));
}

Status JobCheckpointer::RestoreState(const FoundCheckpoint& found, std::vector<std::string>* rates,
                                     const std::stop_token& stop) {
  std::map<std::string, Tensor> stored;
  for (const std::string& name : RateVariables(job_->model().main)) stored[name];
  for (const std::string& name : found.manifest.rate()) stored[name];
  const auto& variables = found.manifest.variable();
  MR_TRY(session_->EmptyTables());
  {
    SaveProgress line("the checkpoint of step " + std::to_string(found.manifest.step()) + " is being loaded",
                      FileBytesOf(found.manifest), {}, terminal_);
    MR_TRY(RestoreVariables(found.folder, {variables.begin(), variables.end()}, session_->root(), &stored,
                            job_->workers(), {stop, [&line](uint64_t bytes) { line.Add(bytes); }}));
  }
  if (found.manifest.has_job() && !job_->desc().has_program()) return Status::Ok();  // the job's fields tell
  for (const auto& [name, before] : stored) {
    const Variable* variable = session_->root().Find(name);
    if (before.empty() || variable == nullptr || !variable->Is<Tensor>()) continue;
    MR_ASSIGN(const std::string was, RateText(before));
    MR_ASSIGN(const std::string is, RateText(variable->Get<Tensor>()));
    if (was != is) rates->push_back("resumed with: variable \"" + name + "\" " + was + " -> " + is);
  }
  return Status::Ok();
}

void JobCheckpointer::NoteOrderOfReaders(const RunState& state) {
  const bool is_within_pass = std::any_of(state.readers.begin(), state.readers.end(),
                                          [](const ReaderState& reader) { return reader.position.items > 0; });
  const auto& blocks = job_->model().startup.blocks();
  if (!is_within_pass || blocks.empty()) return;
  for (const OpDesc& op : blocks[0].ops()) {
    const OpDesc::Attr* const threads = FindAttr(op, "thread_num");
    const OpDesc::Attr* const files = FindAttr(op, "file_names");
    if (op.type() != "open_files" || threads == nullptr || files == nullptr) continue;
    if (threads->i() < 2 || files->strings_size() < 2) continue;
    notes_.push_back(
        "warning: open_files of reader \"" + OutputArguments(op, "Out")[0] + "\" has thread_num " +
        std::to_string(threads->i()) +
        ", and the order of its rows does not repeat: of this pass some may be trained twice and others not "
        "at all; with thread_num 1 a run goes on exactly");
  }
}

void JobCheckpointer::TakeChanges(const CheckpointManifest& manifest, RunState* state) {
  const std::optional<TrainerDesc> before = JobOf(manifest);
  for (const ChangedField& field : changes_) {
    std::string note = "resumed with: " + field.path + " ";
    if (field.path == "filelist" && before.has_value()) {
      note += DifferenceOf(before->filelist(), job_->desc().filelist());
    } else {
      note += field.before + " -> " + field.now;
    }
    for (int i = 0; i < std::min(manifest.epoch(), manifest.pass_name_size()); ++i) {
      if (IsOf(field.path, "incremental.pass[" + manifest.pass_name(i) + "]")) note += ", which is trained already";
    }
    notes_.push_back(std::move(note));
  }
  const bool is_program = job_->desc().has_program() && manifest.has_main_crc32c();
  if (is_program && OperatorsCrc(job_->model().main, job_->environment().ops) != manifest.main_crc32c()) {
    notes_.push_back("resumed with: program.main, whose operators are not those of the checkpoint");
  }
  if (before.has_value()) {
    for (const std::string& set : SetsOfTrainedRows(*before, job_->desc())) {
      notes_.push_back(
          "warning: eval.set \"" + set +
          "\" has other rows of the training files than before: the run may have trained some of them, and "
          "metrics of these are better than those of new rows");
    }
  }
  if (!before.has_value() || (!state->has_best && state->evaluations_since_best == 0)) return;
  const bool is_other = WatchedMetric(*before) != WatchedMetric(job_->desc());
  if (!is_other && WatchedRows(*before) == WatchedRows(job_->desc())) return;
  ForgetBest("evaluations are not what they were: the best one is looked for from here on", state);
}

void JobCheckpointer::ForgetBest(const char* why, RunState* state) {
  state->has_best = false;
  state->best_metric = 0;
  state->evaluations_since_best = 0;
  notes_.emplace_back(why);
}

Status JobCheckpointer::CheckInput(const CheckpointManifest& manifest) {
  MR_TRY(CheckPasses(manifest));
  std::string columns_told;
  for (const ChangedField& field : changes_) {
    if (IsOf(field.path, "data_desc.csv")) columns_told += (columns_told.empty() ? "" : "\n") + WasAndIs(field);
  }
  const Status same = CompareFingerprints(manifest.input_fingerprint(), Fingerprint(), columns_told);
  if (manifest.reader_size() > 0) {
    return same.ok()
               ? same
               : InvalidConfig(same.message() +
                               "; its readers stand in the middle of that input, so restore it, or start anew with "
                               "--resume=never");
  }
  if (manifest.ledger().empty()) return Status::Ok();  // between epochs any input will do
  const std::string why = "; it stands in the middle of epoch " + std::to_string(manifest.epoch() + 1) +
                          " of that input, so restore it, or start anew with --resume=never";
  if (!same.ok()) return InvalidConfig(same.message() + why);
  const std::vector<std::string>& files = job_->FilesOfPass(manifest.epoch());
  if (manifest.input_file_size() != static_cast<int>(files.size())) {
    return InvalidConfig("filelist had " + std::to_string(manifest.input_file_size()) + " files and has now " +
                         std::to_string(files.size()) + why);
  }
  for (int i = 0; i < manifest.input_file_size(); ++i) {
    const std::string& file = files[static_cast<size_t>(i)];
    if (manifest.input_file(i) != file) {
      return InvalidConfig("file " + std::to_string(i) + " of filelist was \"" + manifest.input_file(i) +
                           "\" and is now \"" + file + "\"" + why);
    }
  }
  return CheckFiles(manifest, why);
}

Status JobCheckpointer::CheckFiles(const CheckpointManifest& manifest, const std::string& why) {
  MR_TRY(LookAtFiles(manifest.epoch(), stop_));
  const bool accepts = job_->desc().checkpoint().accept_changed_files();
  const std::vector<std::string>& files = job_->FilesOfPass(manifest.epoch());
  // Checkpoints from before they were kept have none.
  for (int i = 0; i < manifest.input_state_size() && i < static_cast<int>(files.size()); ++i) {
    const auto k = static_cast<size_t>(i);
    bool written_again = false;
    const Status same = CompareInput(manifest.input_state(i), input_states_[k], &written_again);
    const std::string file = "file \"" + files[k] + "\" ";
    if (!same.ok() && !accepts) {
      return InvalidConfig(file + same.message() + why +
                           "; if only lines have changed that were not trained yet, --set "
                           "checkpoint.accept_changed_files=true goes on");
    }
    if (!same.ok()) notes_.push_back(file + same.message() + ": accepted, its lines keep their numbers");
    if (written_again) {
      notes_.push_back(file + "was written again since the checkpoint, with as many bytes and the same at both ends");
    }
  }
  return Status::Ok();
}

Result<bool> JobCheckpointer::LookAtRows(const std::vector<std::string>& files) {
  if (job_->feeds_itself()) return false;
  const DataFeedDesc& feed = job_->desc().data_desc();
  const std::string name = FeedNameFor(job_->desc().dataset().class_name(), feed);
  MR_ASSIGN(const LineCut cut, job_->environment().feeds.CutOf(name, job_->schema(), feed));
  if (cut.in_memory == nullptr) return false;
  input_states_.clear();
  for (const std::string& file : files) {
    const RowsInMemory rows = cut.in_memory(file);
    StoredInputState& state = input_states_.emplace_back();
    state.set_rows(rows.rows);
    state.set_ends_crc32c(rows.checksum);
  }
  return true;
}

Status JobCheckpointer::LookAtFiles(int64_t pass, const std::stop_token& stop) {
  // What was loaded into memory is what every epoch trains on.
  const bool is_loaded_once = job_->desc().dataset().class_name() == "InMemoryDataset" && !job_->is_incremental();
  if (is_loaded_once) pass = 0;
  if (looked_at_ == pass) return Status::Ok();
  const std::vector<std::string>& files = job_->FilesOfPass(pass);
  MR_ASSIGN(const bool are_in_memory, LookAtRows(files));
  if (are_in_memory) {
    looked_at_ = pass;
    return Status::Ok();
  }
  ProgressLine line(ProgressLine::DetectOptions(terminal_));
  auto next_shown = std::chrono::steady_clock::now() + kShortLook;
  Result<std::vector<StoredInputState>> states = LookAtInputs(files, stop, [&](size_t looked_at) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_shown) return;
    next_shown = now + kBetweenLines;
    line.ShowText("looked at " + std::to_string(looked_at) + " of " + std::to_string(files.size()) + " input files");
  });
  line.Clear();
  MR_ASSIGN(input_states_, std::move(states));
  looked_at_ = pass;
  return Status::Ok();
}

Status JobCheckpointer::CheckPasses(const CheckpointManifest& manifest) const {
  const IncrementalDesc& incremental = job_->desc().incremental();
  if (manifest.epoch() > 0 && (manifest.pass_name_size() > 0) != job_->desc().has_incremental()) {
    return InvalidConfig(job_->desc().has_incremental() ? "it is of a job with epochs, and this one is incremental"
                                                        : "it is of an incremental job, and this one has epochs");
  }
  // The pass behind those that are complete counts only when a part of it was trained.
  const int begun = manifest.epoch() + (manifest.ledger().empty() ? 0 : 1);
  for (int i = 0; i < std::min(begun, manifest.pass_name_size()); ++i) {
    if (i < incremental.pass_size() && incremental.pass(i).name() == manifest.pass_name(i)) continue;
    return InvalidConfig("pass " + std::to_string(i + 1) + " was \"" + manifest.pass_name(i) + "\" and is now " +
                         (i < incremental.pass_size() ? "\"" + incremental.pass(i).name() + "\"" : "not there") +
                         "; passes that were trained stay at the head of incremental, new ones come behind them");
  }
  return Status::Ok();
}

double JobCheckpointer::SecondsToSave() {
  if (!size_) size_ = SaveSize::Of(job_->model().main, session_->root());
  return static_cast<double>(size_->BytesToWrite(store_.HasEarlier())) / bytes_a_second_ +
         static_cast<double>(size_->large_tensor_bytes()) / kLookBytesASecond;
}

Status JobCheckpointer::Save(const RunState& state, const CheckpointReason& reason,
                             const std::function<Status()>& check) {
  const ProgramDesc& program = job_->model().main;
  CheckpointContent content;
  content.is_best = reason.is_best;
  content.is_between = reason.is_between;
  content.full_every = job_->desc().checkpoint().full_every();
  content.hurries = stop_.stop_requested();
  const uint64_t expected = store_.BytesToWrite(content, program, session_->root());
  SaveProgress line("the checkpoint of step " + std::to_string(state.step) + " is being written", expected, stop_,
                    terminal_);
  MR_TRY(check());
  CheckpointManifest& manifest = content.manifest;
  manifest.set_millrace_version(MillraceVersion());
  manifest.set_epoch(static_cast<int32_t>(state.epoch));
  manifest.set_step(state.step);
  manifest.set_examples(state.examples);
  if (state.shrunk_epoch > 0) manifest.set_shrunk_epoch(state.shrunk_epoch);
  manifest.set_seed(job_->desc().seed());
  manifest.set_job(JobText(job_->desc()));
  const std::set<std::string> rates = RateVariables(job_->model().main);
  for (const std::string& name : rates) manifest.add_rate(name);
  if (job_->desc().has_program()) {
    const OpRegistry& ops = job_->environment().ops;
    manifest.set_startup(StartupFingerprint(job_->model().startup, rates, ops));
    manifest.set_main_crc32c(OperatorsCrc(job_->model().main, ops));
  }
  manifest.set_ledger(state.trained.ToText());
  // Between passes any input will do.
  if (state.epoch < job_->passes()) {
    for (const std::string& file : job_->FilesOfPass(state.epoch)) manifest.add_input_file(file);
    // A stop that is there already is why this is saved, and leaves time for a short look.
    const GraceStop late(stop_, kLookMayTake);
    const Status looked = LookAtFiles(state.epoch, late.token());
    if (looked.code() == StatusCode::kCancelled) {
      notes_.push_back("the checkpoint does not tell whether input files change: " + looked.message());
    } else {
      MR_TRY(looked);
      for (const StoredInputState& input : input_states_) *manifest.add_input_state() = input;
    }
  }
  if (job_->desc().has_incremental()) {
    for (int64_t i = 0; i < std::min(state.epoch + 1, job_->passes()); ++i) manifest.add_pass_name(job_->PassName(i));
  }
  manifest.set_input_fingerprint(Fingerprint());
  StoreProgress(state, &manifest);
  if (job_->is_dist() && state.input_rows > 0) manifest.set_input_streams(state.input_streams);
  manifest.set_run_id(run_id_);
  content.metrics = {&state.metric_totals};
  if (state.metric_window.has_value()) content.metrics.push_back(&*state.metric_window);
  // One that a stop asked for is not given up: it holds what was trained.
  const bool is_long = std::max(SecondsToSave(), static_cast<double>(expected) / bytes_a_second_) > kMayFinish;
  const bool may_end = !content.hurries && !job_->is_dist() && is_long;
  std::atomic<uint64_t> done{0};
  const LongWork work{may_end ? stop_ : std::stop_token(),
                      [&](uint64_t bytes) {
                        done += bytes;
                        line.Add(bytes);
                      },
                      [&line](uint64_t more) { line.Expect(more); }};
  const auto start = std::chrono::steady_clock::now();
  Status written = store_.Write(content, program, session_->root(), work);
  if (written.ok() && done >= kBytesToMeasure) bytes_a_second_ = static_cast<double>(done) / SecondsSince(start);
  if (written.ok() || (may_end && written.code() == StatusCode::kCancelled)) return written;
  return {written.code(), written.message() + "\nthe checkpoint of step " + std::to_string(state.step) +
                              " could not be written; " +
                              (store_.HasAny() ? "those of before are whole, and --resume=auto goes on from the newest "
                                                 "of them"
                                               : "there is none from before, so that this run cannot be gone on from")};
}

}  // namespace millrace
