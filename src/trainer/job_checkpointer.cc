#include "trainer/job_checkpointer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/delayed_stop.h"
#include "core/hash.h"
#include "program/variable_store.h"
#include "trainer/input_fingerprint.h"
#include "trainer/input_state.h"
#include "trainer/progress_line.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kLookMayTake{300};
constexpr std::chrono::milliseconds kShortLook{1000};
constexpr std::chrono::milliseconds kBetweenLines{100};

uint64_t NewRunId() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return Mix64(static_cast<uint64_t>(now), static_cast<uint64_t>(getpid()));
}

Result<RunState> ToState(const FoundCheckpoint& found) {
  const CheckpointManifest& manifest = found.manifest;
  RunState state;
  state.epoch = manifest.epoch();
  state.step = manifest.step();
  state.examples = manifest.examples();
  MR_ASSIGN(state.trained, TrainedLedger::FromText(manifest.ledger()));
  state.has_best = manifest.has_early_stopping();
  state.best_metric = manifest.early_stopping().best();
  state.evaluations_since_best = manifest.early_stopping().since();
  state.last_eval_step = manifest.evaluated_step();
  state.input_rows = manifest.input_rows();
  state.printed_batches = manifest.printed_batches();
  for (const StoredReader& reader : manifest.reader()) {
    state.readers.push_back({reader.name(), {.resets = reader.resets(), .items = reader.items()}});
  }
  for (const StoredLoopVariable& variable : manifest.loop_variable()) {
    state.loop_variables.push_back({variable.name(), variable.tensor()});
  }
  for (const StoredOperatorState& stored : manifest.operator_state()) {
    state.operator_states.push_back({stored.name(), stored.frame(), stored.attributes(), stored.state()});
  }
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

}  // namespace

Result<std::unique_ptr<JobCheckpointer>> JobCheckpointer::Create(Job& job, std::stop_token stop, std::FILE* terminal) {
  MR_ASSIGN(CheckpointStore store,
            CheckpointStore::Create(job.output_dir() + "/checkpoints", job.desc().checkpoint().keep()));
  std::unique_ptr<JobCheckpointer> checkpointer(
      new JobCheckpointer(job, std::move(store), NewRunId(), std::move(stop), terminal));
  if (!job.feeds_itself() && !job.desc().infer()) MR_TRY(checkpointer->LookAtFiles(0, checkpointer->stop_));
  return checkpointer;
}

Result<std::optional<RunState>> JobCheckpointer::Resume(const std::string& resume) {
  if (resume == "never") return StartAnew();
  std::optional<FoundCheckpoint> found;
  if (resume == "auto") {
    MR_ASSIGN(found, store_.FindNewest(job_->model().main, &notes_));
    if (!found.has_value()) {
      notes_.push_back("no checkpoint in \"" + store_.folder() + "\": starting anew");
      return StartAnew();
    }
  } else if (!std::filesystem::is_directory(resume)) {
    return InvalidConfig("--resume is auto, never or the folder of a checkpoint, and there is no folder \"" + resume +
                         "\"");
  } else if (!std::filesystem::exists(resume + "/MANIFEST")) {
    return InvalidConfig("--resume: \"" + resume +
                         "\" is no checkpoint: it has no MANIFEST. Those of a run are "
                         "OUTPUT_DIR/checkpoints/step-..., and --resume=auto takes the newest whole one");
  } else {
    MR_ASSIGN(found, ReadCheckpoint(resume, job_->model().main));
    if (!job_->desc().infer() && store_.HasLaterThan(found->manifest.step())) {
      notes_.push_back("the checkpoints of later steps in \"" + store_.folder() +
                       "\" are left behind: the next one that is written takes their place");
    }
  }
  const CheckpointManifest& manifest = found->manifest;
  if (!job_->desc().infer()) {
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
    if (!job_->desc().infer()) {
      notes_.push_back("the metrics of the job have changed: those of epoch " + std::to_string(manifest.epoch() + 1) +
                       " count from here");
    }
    totals = job_->metrics().NewTotals();
  }
  MR_TRY(RestoreVariables(found->folder, {manifest.variable().begin(), manifest.variable().end()}, job_->root()));
  MR_ASSIGN(RunState state, ToState(*found));
  state.metric_totals = *std::move(totals);
  state.metric_window = std::move(window);
  run_id_ = manifest.run_id();
  if (job_->desc().infer()) {
    notes_.push_back("parameters of \"" + found->folder + "\": " + EpochOf(state) + ", step " +
                     std::to_string(state.step) + ", " + std::to_string(state.examples) + " examples");
    return std::optional<RunState>(std::move(state));
  }
  notes_.push_back("going on from \"" + found->folder + "\": " + EpochOf(state) + ", step " +
                   std::to_string(state.step) + ", " + std::to_string(state.examples) + " examples");
  return std::optional<RunState>(std::move(state));
}

Result<std::optional<RunState>> JobCheckpointer::RestoreBest(const RunState& state) {
  std::optional<FoundCheckpoint> found = store_.FindBest(job_->model().main);
  const bool is_ours = found.has_value() && found->manifest.run_id() == run_id_ &&
                       found->manifest.early_stopping().best() == state.best_metric;
  if (!is_ours) {
    notes_.push_back("the checkpoint of the best evaluation is not in \"" + store_.folder() +
                     "\": the last model is kept instead");
    return std::optional<RunState>();
  }
  MR_TRY(job_->InitParameters());
  MR_TRY(RestoreVariables(found->folder, {found->manifest.variable().begin(), found->manifest.variable().end()},
                          job_->root()));
  MR_ASSIGN(RunState best, ToState(*found));
  return std::optional<RunState>(std::move(best));
}

Result<std::optional<RunState>> JobCheckpointer::StartAnew() {
  if (!job_->desc().infer()) MR_TRY(store_.BeginRun(run_id_));
  return std::optional<RunState>();
}

std::string JobCheckpointer::Fingerprint() const {
  std::string text = InputFingerprint(job_->desc(), job_->schema());
  if (job_->feeds_itself()) text += ReaderFingerprint(job_->model().startup, job_->environment().ops);
  return text;
}

Status JobCheckpointer::CheckInput(const CheckpointManifest& manifest) {
  const TrainerDesc& desc = job_->desc();
  if (manifest.seed() != desc.seed()) {
    return InvalidConfig("seed was " + std::to_string(manifest.seed()) + " and is now " + std::to_string(desc.seed()));
  }
  MR_TRY(CheckPasses(manifest));
  const std::string now = Fingerprint();
  if (manifest.reader_size() > 0) {
    const Status same = CompareFingerprints(manifest.input_fingerprint(), now);
    return same.ok()
               ? same
               : InvalidConfig(same.message() +
                               "; its readers stand in the middle of that input, so restore it, or start anew with "
                               "--resume=never");
  }
  if (manifest.ledger().empty()) return Status::Ok();  // between epochs any input will do
  const std::string why = "; it stands in the middle of epoch " + std::to_string(manifest.epoch() + 1) +
                          " of that input, so restore it, or start anew with --resume=never";
  if (const Status same = CompareFingerprints(manifest.input_fingerprint(), now); !same.ok()) {
    return InvalidConfig(same.message() + why);
  }
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

Status JobCheckpointer::LookAtFiles(int64_t pass, const std::stop_token& stop) {
  // What was loaded into memory is what every epoch trains on.
  const bool is_loaded_once = job_->desc().dataset().class_name() == "InMemoryDataset" && !job_->is_incremental();
  if (is_loaded_once) pass = 0;
  if (looked_at_ == pass) return Status::Ok();
  const std::vector<std::string>& files = job_->FilesOfPass(pass);
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

Status JobCheckpointer::Save(const RunState& state, bool best) {
  CheckpointContent content;
  CheckpointManifest& manifest = content.manifest;
  manifest.set_millrace_version(MILLRACE_VERSION);
  manifest.set_epoch(static_cast<int32_t>(state.epoch));
  manifest.set_step(state.step);
  manifest.set_examples(state.examples);
  manifest.set_seed(job_->desc().seed());
  manifest.set_ledger(state.trained.ToText());
  // Between passes any input will do.
  if (state.epoch < job_->passes()) {
    for (const std::string& file : job_->FilesOfPass(state.epoch)) manifest.add_input_file(file);
    // A stop that is there already is why this is saved, and leaves time for a short look.
    const LateStop late(stop_, kLookMayTake);
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
  manifest.set_input_rows(state.input_rows);
  manifest.set_printed_batches(state.printed_batches);
  manifest.set_evaluated_step(state.last_eval_step);
  if (state.has_best) {
    manifest.mutable_early_stopping()->set_best(state.best_metric);
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
  for (const auto& [name, value] : state.last_metrics) {
    StoredMetric& stored = *manifest.add_last_metric();
    stored.set_name(name);
    stored.set_value(value);
  }
  manifest.set_run_id(run_id_);
  content.metrics = MetricSet::ToBytes(state.metric_totals);
  if (state.metric_window.has_value()) content.metrics += MetricSet::ToBytes(*state.metric_window);
  content.is_best = best;
  Status written = store_.Write(content, job_->model().main, job_->root());
  if (written.ok()) return written;
  return {written.code(), written.message() + "\nthe checkpoint of step " + std::to_string(state.step) +
                              " could not be written; those of before are whole, and --resume=auto goes on from the "
                              "newest of them"};
}

}  // namespace millrace
