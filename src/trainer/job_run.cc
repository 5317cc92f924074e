#include "trainer/job_run.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "checkpoint/job_checkpointer.h"
#include "checkpoint/pass_models.h"
#include "core/caught.h"
#include "core/delayed_stop.h"
#include "core/file.h"
#include "core/machine_memory.h"
#include "core/replace_folder.h"
#include "core/wire.h"
#include "job/output_folder.h"
#include "job/server_tables.h"
#include "ranks/rank_restarts.h"
#include "report/run_recorder.h"
#include "report/save_progress.h"
#include "runtime/finite_variables.h"
#include "runtime/variable_store.h"
#include "serving/export_model.h"
#include "serving/inference_model.h"
#include "table/server_rows.h"
#include "trainer/builtin_trainers.h"
#include "trainer/evaluator.h"
#include "trainer/feature_importance.h"
#include "trainer/model_check.h"

namespace millrace {
namespace {

/// Writes each export; one that fails does not keep the others, the model and run.json from being written. The first
/// failure comes back; kCancelled when a stop request came before all were written.
Status WriteExports(JobSession& session, int64_t step, const std::stop_token& give_up, RunSummary* summary,
                    std::FILE* terminal) {
  Status first;
  std::vector<ModelExport> calibrated;
  const Calibrations* const calibrations = CalibrationsOf(session, step);
  if (calibrations != nullptr && !session.job().exports().empty()) {
    MR_ASSIGN(std::shared_ptr<const CompiledModel> model, session.job().PaddleModel(give_up));
    MR_ASSIGN(model, CalibratedModel(*model, calibrations->tasks, session.job().environment().ops));
    MR_ASSIGN(calibrated, session.job().PlanExports(*model));
  }
  for (const ModelExport& wanted : calibrations != nullptr ? calibrated : session.job().exports()) {
    if (give_up.stop_requested()) return Cancelled("stopped before the export to \"" + wanted.folder() + "\"");
    Status written = wanted.Write(session.root(), {give_up, {}}).Context(wanted.folder());
    if (written.code() == StatusCode::kCancelled) return written;
    if (written.ok() && session.job().desc().data_desc().zeros() == DataFeedDesc::DROP) {
      std::fprintf(terminal,
                   "warning: \"%s\" was trained without zeros of sparse slots (data_desc.zeros: DROP); another runtime "
                   "must leave them out of what it feeds\n",
                   wanted.folder().c_str());
    }
    if (written.ok()) continue;
    summary->export_failures.push_back(written.message());
    if (first.ok()) first = std::move(written);
  }
  return first;
}

/// Whether the model is fit to be kept; with allow_non_finite it is, and what is wrong with it is said.
Status CheckResult(const JobSession& session, RunReport* report, std::FILE* terminal) {
  if (!session.job().desc().allow_non_finite()) return CheckToBeSaved(session, report->state.step, report);
  const Status finite = CheckFiniteVariables(session.job().model().main, session.root());
  if (!finite.ok()) std::fprintf(terminal, "warning: %s\n", finite.message().c_str());
  return Status::Ok();
}

/// Where the parameters stand that are saved: at the end, or where they were best.
RunState StateOfSaved(const RunReport& report) {
  RunState state = report.state;
  if (!report.is_best_restored || !report.best_evaluation.has_value()) return state;
  state.step = report.best_evaluation->step;
  state.examples = report.best_evaluation->trained_examples;
  return state;
}

/// Writes what a finished training is for: variables, model and exports. `*exported` becomes the first failure of an
/// export. kCancelled when `give_up` came before all was written; `stop` is when to say how far it is.
Status SaveModels(JobSession& session, RunReport& report, const std::stop_token& give_up, const std::stop_token& stop,
                  RunSummary* summary, Status* exported, std::FILE* terminal) {
  const CompiledJob& job = session.job();
  MR_TRY(CheckResult(session, &report, terminal));
  const uint64_t bytes = BytesToStore(job.model().main, session.root());
  if (job.desc().program().has_save_dir()) {
    if (give_up.stop_requested()) return Cancelled("stopped before the variables were saved");
    SaveProgress line("program.save_dir is being written", bytes, stop, terminal);
    MR_TRY(SaveProgramVariables(session, StateOfSaved(report), job.desc().program().save_dir(),
                                [&line](uint64_t done) { line.Add(done); }));
  }
  if (job.desc().program().has_save_server_dir())
    MR_TRY(SaveServerTables(job.model(), job.desc().program().save_server_dir(), session.root(), give_up));
  const bool has_prediction = !job.model().prediction.empty();
  if (!job.output_dir().empty() && job.desc().output().save_inference_model() && has_prediction) {
    SaveProgress line("the model is being written", bytes, stop, terminal);
    MR_TRY(SaveJobModel(session, StateOfSaved(report), TableContent::kWeights, job.output_dir() + "/model",
                        {give_up, [&line](uint64_t done) { line.Add(done); }}));
  }
  *exported = WriteExports(session, StateOfSaved(report).step, give_up, summary, terminal);
  return exported->code() == StatusCode::kCancelled ? std::exchange(*exported, {}) : Status::Ok();
}

/// Says what is not lost when results cannot be written.
Status NameWholeCheckpoint(const Status& saved, const RunReport& report) {
  const bool is_kept = report.saved_step > 0 && report.saved_step == report.state.step;
  if (saved.code() != StatusCode::kIo || !is_kept) return saved;
  return {saved.code(), saved.message() + "\nthe training is done, and the checkpoint of step " +
                            std::to_string(report.saved_step) +
                            " holds it: once there is room on the disk, or what else is in the way is gone, "
                            "--resume=auto writes the model without training again"};
}

/// `*exported` becomes the first failure of an export. What `give_up` leaves unwritten makes the run an interrupted
/// one.
Status SaveResults(JobSession& session, RunReport& report, const std::stop_token& give_up, const std::stop_token& stop,
                   RunSummary& summary, Status* exported, std::FILE* terminal) {
  const CompiledJob& job = session.job();
  // The folder may have been removed meanwhile. Where it cannot be made again, writing to it fails below and says so.
  std::error_code ignored;
  if (!job.output_dir().empty()) std::filesystem::create_directories(job.output_dir(), ignored);
  if (job.desc().infer()) {
    return job.output_dir().empty() ? Status::Ok()
                                    : WriteFileAtomically(job.output_dir() + "/infer.json", RunJson(summary));
  }
  if (!summary.interrupted) {
    Status saved = SaveModels(session, report, give_up, stop, &summary, exported, terminal);
    summary.interrupted = saved.code() == StatusCode::kCancelled && give_up.stop_requested();
    if (!summary.interrupted) MR_TRY(NameWholeCheckpoint(saved, report));
    if (summary.interrupted) {
      std::fputs("the training is done and kept as a checkpoint; the run that goes on writes the model\n", terminal);
    }
  }
  if (job.output_dir().empty()) return Status::Ok();
  if (!report.chrome_trace.empty()) {
    MR_TRY(WriteFileAtomically(job.output_dir() + "/trace.json", report.chrome_trace));
  }
  return WriteFileAtomically(job.output_dir() + "/run.json", RunJson(summary));
}

/// Whether the model of another evaluation than the last one is to be kept.
bool KeepsAnother(const RunReport& report) {
  return !report.interrupted && report.state.has_best && report.state.evaluations_since_best > 0;
}

/// Measures the restored model, which an earlier run has found best. A collective.
Status MeasureBest(JobSession& session, const RunState& restored, const std::stop_token& stop, RunReport* report) {
  Result<std::unique_ptr<Evaluator>> evaluator = Evaluator::Create(session);
  MR_TRY(session.ranks().Agree(evaluator.status()));
  Result<EvalReport> evaluation = (*evaluator)->Run(restored, stop);
  // On ranks it may be another one that was asked to stop.
  const bool is_stopped = session.job().is_dist() && evaluation.status().code() == StatusCode::kCancelled;
  if (!evaluation.ok() && (stop.stop_requested() || is_stopped)) {
    // What is known of the last model, its calibration too, is not this one's: the run that goes on measures it.
    report->interrupted = true;
    return Status::Ok();
  }
  MR_TRY(evaluation.status());
  if (session.leads()) report->best_evaluation = *std::move(evaluation);
  return Status::Ok();
}

/// With early stopping or keep_best, puts the model of the best evaluation in the place of the last one. A collective
/// of the job's ranks, if it has some; the one that leads decides.
Status KeepBestModel(JobSession& session, JobCheckpointer& checkpointer, const std::stop_token& give_up,
                     const std::stop_token& stop, RunReport* report) {
  RankGroup& ranks = session.ranks();
  Result<std::string> folder = std::string();
  if (session.leads() && KeepsAnother(*report)) folder = checkpointer.FindBest(report->state, give_up);
  Status found = folder.status();
  std::string best = folder.ok() ? *folder : "";
  MR_TRY(ranks.FromLeader(&best));
  std::optional<RunState> restored;
  if (found.ok() && !best.empty()) {
    Result<RunState> state = checkpointer.Restore(best, give_up);
    found = state.status();
    if (state.ok()) restored = *std::move(state);
  }
  found = ranks.Agree(found);
  report->interrupted |= found.code() == StatusCode::kCancelled;
  if (report->interrupted) return Status::Ok();
  MR_TRY(std::move(found));
  report->is_best_restored = restored.has_value();
  if (!restored.has_value()) return Status::Ok();
  report->finite_step = -1;  // it is another model now
  int64_t is_measured = session.leads() && report->best_evaluation.has_value() ? 1 : 0;
  MR_TRY(ranks.communicator().SumOverRanks({&is_measured, 1}));
  if (is_measured == 0) MR_TRY(MeasureBest(session, *restored, stop, report));
  if (report->best_evaluation.has_value()) {
    session.SetCalibrations(*report->best_evaluation);
    session.SetSlotShares(*report->best_evaluation);
  }
  return Status::Ok();
}

Status CheckBestCanBeKept(const TrainerDesc& desc) {
  const bool watches = desc.eval().has_early_stopping() || !desc.checkpoint().keep_best().empty();
  const bool exports = desc.output().export__size() > 0;
  if (!watches || (!desc.program().has_save_dir() && !exports)) return Status::Ok();
  return InvalidConfig(std::string(exports ? "output.export" : "program.save_dir") +
                       " is to hold the best model, which is kept as a checkpoint until the end: give --output_dir, or "
                       "leave out eval.early_stopping and checkpoint.keep_best");
}

/// Tells the user what the checkpointer has to say since the last call.
void PrintNotes(JobCheckpointer& checkpointer, std::FILE* terminal) {
  for (const std::string& note : checkpointer.TakeNotes()) std::fprintf(terminal, "%s\n", note.c_str());
}

Status ReportImportance(JobSession& session, const std::stop_token& stop, std::FILE* terminal) {
  MR_ASSIGN(const ImportanceReport report, MeasureFeatureImportance(session, stop));
  std::fputs(ImportanceTable(report).c_str(), terminal);
  const std::string& folder = session.job().output_dir();
  if (folder.empty()) return Status::Ok();
  return WriteFileAtomically(folder + "/feature_importance.json", ImportanceJson(report));
}

Status CheckReplacedFolders(const CompiledJob& job, const std::string& resume) {
  const bool saves = job.desc().output().save_inference_model() && !job.model().prediction.empty();
  if (saves && !job.output_dir().empty()) MR_TRY(CheckReplaced(job.output_dir() + "/model", kModelFolder));
  const bool saves_passes = job.is_incremental() && !job.model().prediction.empty() && !job.output_dir().empty();
  for (int64_t pass = saves_passes ? CompletePasses(resume, job.output_dir()) : job.passes(); pass < job.passes();
       ++pass) {
    MR_TRY(CheckReplaced(job.output_dir() + "/models/" + job.PassName(pass), kModelFolder));
  }
  if (const ProgramFiles& program = job.desc().program(); program.has_save_server_dir()) {
    for (const ServerTable& table : job.model().server_tables) {
      MR_TRY(CheckReplaced(ServerTableFolder(program.save_server_dir(), table.id), kServerTableFolder));
    }
  }
  for (const ModelExport& planned : job.exports()) {
    MR_TRY(CheckReplaced(planned.folder(), kExportFolder));
  }
  return Status::Ok();
}

/// Refuses what cannot go together before anything is read or made.
Status CheckRequest(const CompiledJob& job, const std::string& resume, const std::string& model) {
  const bool keeps = !job.output_dir().empty();
  const bool infer = job.desc().infer();
  if (job.desc().has_feature_importance() && !infer) MR_TRY(CheckFeatureImportance(job));
  if (!keeps && resume != "never") {
    return InvalidConfig("--resume=" + resume + " needs the folder of the earlier run: give --output_dir");
  }
  if (!keeps && !infer) {
    MR_TRY(CheckBestCanBeKept(job.desc()));
    if (job.is_incremental() && job.desc().incremental().save_interval() > 0) {
      return InvalidConfig("incremental saves models: give --output_dir, or set save_interval: 0");
    }
  }
  if (model != "last" && model != "best") return InvalidConfig("--model is best or last, not \"" + model + "\"");
  if (model == "best" && !(infer && resume == "auto")) {
    return InvalidConfig(
        "--model=best names the parameters of an inference: it goes with --set infer=true and --resume=auto; a "
        "training goes on from the last ones");
  }
  return infer ? Status::Ok() : CheckReplacedFolders(job, resume);
}

/// The losses of which no example counted.
std::vector<std::string> WeightlessOf(const std::map<std::string, bool>& weighed) {
  std::vector<std::string> losses;
  for (const auto& [loss, counts] : weighed) {
    if (!counts) losses.push_back(loss);
  }
  return losses;
}

/// A job as run.json has it. What features learnt is as long as their vocabularies, and says nothing of how the run was
/// configured.
std::string JobAsConfigured(const TrainerDesc& desc) {
  TrainerDesc job = desc;
  if (job.has_data_desc()) job.mutable_data_desc()->clear_feature_states();
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(job, &text);
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

/// The summary of a run that took `seconds`, with what its session counted; `processors` as in RanksOfRun.
RunSummary SummaryOf(JobSession& session, const RunReport& report, double seconds, int processors) {
  const CompiledJob& job = session.job();
  const int ranks = job.is_dist() ? session.ranks().size() : 0;
  const int servers = job.rank_servers(ranks);
  RunSummary summary =
      Summarize(report, std::max(1, ranks - servers) * job.workers(), seconds, {ranks, servers, processors});
  for (const SaveFailure& failure : report.state.save_failures) summary.save_failures.push_back(failure.message);
  summary.infer = job.desc().infer();
  summary.is_program = job.desc().has_program();
  summary.odd_loss_labels = session.label_monitor().of_losses();
  summary.odd_metric_labels = session.label_monitor().of_measures();
  summary.weightless_losses = WeightlessOf(session.label_monitor().Weighed());
  summary.non_finite_losses = {session.non_finite_losses().count(), session.non_finite_losses().first()};
  if (!report.interrupted && CalibrationsOf(session, StateOfSaved(report).step) != nullptr) {
    summary.calibrations = session.calibrations();
  }
  summary.job = JobAsConfigured(job.desc());
  if (!job.loss().empty()) summary.better.emplace_back("loss", MetricBetter::kLower);
  for (const std::string& name : job.metrics().names()) summary.better.emplace_back(name, *job.metrics().Better(name));
  return summary;
}

/// A warning about copies of rows that ranks exchanged seldom; empty where they did not.
std::string SeldomExchanged(const CompiledJob& job, const RunSummary& summary) {
  constexpr int64_t kOftenEnough = 20;
  const int trainers = summary.ranks - summary.servers;
  if (job.geo_steps() == 0 || trainers < 2 || summary.interrupted) return "";
  const int64_t batches = summary.run_batches / trainers;
  const int64_t exchanges = batches / job.geo_steps();
  if (batches == 0 || exchanges >= kOftenEnough) return "";
  const int64_t fewer = batches / kOftenEnough;
  return "warning: dist.geo_steps: " + std::to_string(job.geo_steps()) + ": each rank trained about " +
         std::to_string(batches) + " batches and exchanged its rows " + std::to_string(exchanges) +
         " times; with fewer than 20 exchanges the model is worse than that of one rank: " +
         (fewer > 0 ? "set geo_steps to at most " + std::to_string(fewer) + ", or use" : std::string("use")) +
         " update: ASYNC\n";
}

/// The fields of RankFigures that travel, but for the host.
template <class Figures>
auto NumbersOf(Figures& figures) {
  return std::tie(figures.examples, figures.rows, figures.row_bytes, figures.read_seconds, figures.run_seconds,
                  figures.exchange_seconds, figures.peak_rss_bytes);
}

/// What a rank counted that its report does not hold.
struct RankCounts {
  RankFigures figures;                ///< of one rank
  std::vector<RankFigures> per_rank;  ///< of all
  int64_t wire_bytes = 0;
  RankPushes pushes;
  std::array<LabelRangeCount, 3> odd;   ///< labels for losses, for metrics; losses that were not finite
  std::map<std::string, bool> weighed;  ///< as LabelRangeMonitor::Weighed
  std::set<std::pair<std::string, int>> processors = {};  ///< that it may use: host and number

  static RankCounts Of(JobSession& session, const RunReport& report) {
    const auto& losses = session.non_finite_losses();
    return {
        FiguresOf(session, report),
        {},
        session.ranks().communicator().bytes_sent(),
        session.ranks().tables().pushes(),
        {session.label_monitor().of_losses(), session.label_monitor().of_measures(), {losses.count(), losses.first()}},
        session.label_monitor().Weighed()};
  }
  static RankFigures FiguresOf(JobSession& session, const RunReport& report) {
    RankFigures figures;
    figures.host = HostName();
    for (const PassReport& pass : report.passes) {
      figures.examples += pass.examples;
      figures.read_seconds += pass.read_seconds;
      figures.run_seconds += pass.run_seconds;
      figures.exchange_seconds += pass.exchange_seconds;
    }
    std::tie(figures.rows, figures.row_bytes) = session.ranks().tables().RowsHere();
    figures.peak_rss_bytes = PeakMemory();
    return figures;
  }
  void Add(const RankCounts& other) {
    wire_bytes += other.wire_bytes;
    pushes.Add(other.pushes);
    for (size_t i = 0; i < odd.size(); ++i) {
      if (odd[i].count == 0) odd[i].first = other.odd[i].first;
      odd[i].count += other.odd[i].count;
    }
    for (const auto& [loss, counts] : other.weighed) weighed[loss] = weighed[loss] || counts;
    processors.insert(other.processors.begin(), other.processors.end());
  }
};

/// A run, in the steps between which the ranks of a job wait for each other. The rank that leads, or the only one, does
/// all of them; others do what changes their parameters.
class JobRun {
 public:
  JobRun(JobSession& session, std::stop_token stop, const RunOutput& output, FileDescriptor folder)
      : session_(session), job_(session.job()), stop_(std::move(stop)), output_(output), folder_(std::move(folder)) {}

  /// Makes the folder and the parameters.
  Status Start(const std::string& resume, const std::string& model);
  /// Finds the checkpoint to go on from (JobCheckpointer::Find). Of a rank that follows, `resume` is what this returned
  /// where one leads.
  Result<std::string> FindCheckpoint(const std::string& resume) { return checkpointer_->Find(resume); }
  /// Goes on from it.
  Status Resume();
  /// Whether the passes that are to be trained have files.
  Status CheckFilesOfPasses() const;
  bool keeps() const { return checkpointer_ != nullptr; }
  Status MakeTrainer();
  Status Train();
  /// Of a job of ranks a collective.
  Status KeepBest();
  Result<RunSummary> Finish();
  /// Brings what every rank counted to the one that leads. A collective.
  Status GatherCounts();
  /// Of a rank that follows, which leaves the rest to the one that leads.
  RunSummary Summary();

 private:
  JobSession& session_;
  const CompiledJob& job_;
  const std::stop_token stop_;
  const RunOutput& output_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  FileDescriptor folder_;
  std::unique_ptr<JobCheckpointer> checkpointer_;
  std::optional<RunState> resumed_;
  int64_t resumed_examples_ = 0;
  RunState reached_;
  std::unique_ptr<RunRecorder> recorder_;
  std::unique_ptr<PassModels> models_;
  std::unique_ptr<Trainer> trainer_;
  RunReport report_;
  RankCounts counts_;              ///< of all ranks
  std::optional<GraceStop> late_;  ///< when to give up the work that follows training
};

Status JobRun::Start(const std::string& resume, const std::string& model) {
  const bool keeps = !job_.output_dir().empty();
  const bool has_checkpoints = keeps && (!job_.desc().infer() || resume != "never");
  if (session_.leads()) {
    MR_TRY(CheckRequest(job_, resume, model));
    if (keeps && !folder_.is_open()) {
      MR_ASSIGN(folder_, MakeOutputFolder(job_.output_dir()));
    }
    if (has_checkpoints) {
      MR_ASSIGN(checkpointer_, JobCheckpointer::Create(session_, stop_, output_.terminal));
    }
  } else if (has_checkpoints) {
    checkpointer_ = JobCheckpointer::Follow(session_, stop_, output_.terminal);
  }
  return session_.InitParameters(stop_);
}

Status JobRun::Resume() {
  MR_ASSIGN(resumed_, checkpointer_->Resume());
  if (session_.leads()) PrintNotes(*checkpointer_, output_.terminal);
  // Within an epoch of rows in memory its positions are those of so many streams.
  const bool is_within = resumed_.has_value() && !resumed_->trained.empty() && resumed_->input_rows > 0;
  return job_.is_dist() && is_within ? session_.SetInputStreams(resumed_->epoch, resumed_->input_streams)
                                     : Status::Ok();
}

Status JobRun::CheckFilesOfPasses() const {
  for (int64_t pass = resumed_.has_value() ? resumed_->epoch : 0; job_.is_incremental() && pass < job_.passes();
       ++pass) {
    if (!job_.FilesOfPass(pass).empty()) continue;
    return NotFound(
        "pass \"" + job_.PassName(pass) +
        "\": its files are not there, and it is to be trained: the newest checkpoint is behind it, and this "
        "run does not go on from that one");
  }
  return Status::Ok();
}

Status JobRun::MakeTrainer() {
  MR_TRY(CheckFilesOfPasses());
  const bool infer = job_.desc().infer();
  TrainerHooks hooks;
  resumed_examples_ = resumed_.has_value() ? resumed_->examples : 0;
  hooks.resume = std::move(resumed_);
  if (session_.leads()) {
    MR_ASSIGN(recorder_,
              RunRecorder::Create(job_, hooks.resume.has_value() && !infer ? hooks.resume->step : -1, output_, stop_));
    if (job_.is_incremental() && !job_.output_dir().empty()) {
      MR_ASSIGN(models_, PassModels::Create(session_, output_.terminal));
    }
    hooks.checkpointer = checkpointer_.get();
    hooks.reporter = recorder_.get();
    hooks.pass_saver = models_.get();
    hooks.on_resumed = [this] {
      MR_TRY(checkpointer_->GoOn());
      return recorder_->GoOn();
    };
    hooks.on_shrunk = [this](const TableShrink& shrink) { return recorder_->OnShrink(shrink); };
  }
  // What was trained before says nothing about the lines of an inference.
  if (infer) hooks = {nullptr, recorder_.get(), nullptr, std::nullopt, {}};
  hooks.reached = &reached_;
  MR_ASSIGN(trainer_, CreateTrainer(session_, std::move(hooks)));
  return Status::Ok();
}

Status JobRun::Train() {
  RankRestarts* const restarts = session_.ranks().restarts();
  if (restarts != nullptr) restarts->GoOn(resumed_examples_);
  Result<RunReport> trained = Caught("training", [&] { return trainer_->Run(stop_); });  // a plugin's may throw
  if (checkpointer_ != nullptr && session_.leads()) PrintNotes(*checkpointer_, output_.terminal);
  if (restarts != nullptr) restarts->SetReached(reached_.examples);
  MR_ASSIGN(report_, std::move(trained));
  trainer_.reset();
  return Status::Ok();
}

Status JobRun::GatherCounts() {
  RankGroup& ranks = session_.ranks();
  const RankCounts mine = RankCounts::Of(session_, report_);
  std::string bytes;
  WireWriter out(&bytes);
  out.Put(mine.wire_bytes);
  out.Put(mine.pushes);
  std::apply([&out](const auto&... values) { (out.Put(values), ...); }, NumbersOf(mine.figures));
  for (const LabelRangeCount& count : mine.odd) {
    out.Put(count.count);
    out.PutText(count.first);
  }
  out.Put(static_cast<int64_t>(mine.weighed.size()));
  for (const auto& [loss, counts] : mine.weighed) {
    out.PutText(loss);
    out.Put(static_cast<int64_t>(counts));
  }
  out.PutText(mine.figures.host);
  out.PutAll(std::span<const int>(UsableProcessors()));
  std::vector<std::string> all;
  MR_TRY(ranks.ToLeader(bytes, &all));
  if (!ranks.leads()) return Status::Ok();
  counts_ = {};
  for (const std::string& theirs : all) {
    WireReader in(theirs);
    RankCounts counts;
    counts.wire_bytes = in.Get<int64_t>();
    counts.pushes = in.Get<RankPushes>();
    RankFigures& of_rank = counts_.per_rank.emplace_back();
    std::apply([&in](auto&... values) { ((values = in.Get<std::remove_reference_t<decltype(values)>>()), ...); },
               NumbersOf(of_rank));
    for (LabelRangeCount& count : counts.odd) {
      count.count = in.Get<int64_t>();
      count.first = in.GetText();
    }
    for (auto left = in.Get<int64_t>(); left > 0; --left) {
      const std::string loss(in.GetText());
      counts.weighed[loss] = in.Get<int64_t>() != 0;
    }
    of_rank.host = in.GetText();
    std::vector<int> processors;
    in.GetAll(&processors);
    for (const int processor : processors) counts.processors.insert({of_rank.host, processor});
    counts_.Add(counts);
  }
  // The leader's pass reports are of all ranks.
  RankFigures& own = counts_.per_rank[0];
  for (size_t r = 1; r < counts_.per_rank.size(); ++r) {
    const RankFigures& other = counts_.per_rank[r];
    own.examples -= other.examples;
    own.read_seconds -= other.read_seconds;
    own.run_seconds -= other.run_seconds;
    own.exchange_seconds -= other.exchange_seconds;
  }
  return Status::Ok();
}

RunSummary JobRun::Summary() {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
  RunSummary summary = SummaryOf(session_, report_, seconds.count(), static_cast<int>(counts_.processors.size()));
  if (!session_.leads()) return summary;
  summary.wire_bytes = counts_.wire_bytes;
  summary.pushes = counts_.pushes;
  if (summary.ranks > 0) summary.per_rank = counts_.per_rank;
  if (const RankRestarts* restarts = session_.ranks().restarts(); restarts != nullptr) {
    summary.restarts = restarts->count();
    summary.recovery_seconds = restarts->seconds();
    summary.replayed = restarts->replayed();
  }
  summary.odd_loss_labels = counts_.odd[0];
  summary.odd_metric_labels = counts_.odd[1];
  summary.weightless_losses = WeightlessOf(counts_.weighed);
  summary.non_finite_losses = counts_.odd[2];
  return summary;
}

Status JobRun::KeepBest() {
  if (recorder_ != nullptr) recorder_->ClearProgress();
  // What the last checkpoint holds as well, the run that goes on can write.
  const bool is_kept = checkpointer_ != nullptr && !job_.desc().infer() && report_.saved_step == report_.state.step;
  late_.emplace(is_kept ? stop_ : std::stop_token(), kMayTakeAtStop);
  if (checkpointer_ == nullptr || job_.desc().infer()) return Status::Ok();
  Status kept = KeepBestModel(session_, *checkpointer_, late_->token(), stop_, &report_);
  if (session_.leads()) PrintNotes(*checkpointer_, output_.terminal);
  return kept;
}

Result<RunSummary> JobRun::Finish() {
  const bool infer = job_.desc().infer();
  const std::stop_token give_up = late_->token();
  RunSummary summary = Summary();
  summary.is_ended_by_callback = summary.interrupted && output_.ended && output_.ended();
  Status exported;
  MR_TRY(SaveResults(session_, report_, give_up, stop_, summary, &exported, output_.terminal));
  if (job_.desc().has_feature_importance() && !infer && !summary.interrupted) {
    const Status measured = ReportImportance(session_, stop_, output_.terminal);
    summary.interrupted = measured.code() == StatusCode::kCancelled;
    if (!summary.interrupted) MR_TRY(measured);
  }
  std::fputs(ClosingBlock(summary, job_.output_dir()).c_str(), output_.terminal);
  std::fputs(SeldomExchanged(job_, summary).c_str(), output_.terminal);
  if (!summary.interrupted) MR_TRY(recorder_->Finish());
  if (!exported.ok()) {
    const std::string where = job_.output_dir().empty() ? "" : " and in " + job_.output_dir();
    return Status(exported.code(), "the model is trained" + where + ", but not exported: " + exported.message());
  }
  const std::string uncalibrated = UncalibratedText(session_, StateOfSaved(report_).step);
  if (!infer && !summary.interrupted && !uncalibrated.empty()) {
    return BadData(std::string("the model is trained") + (job_.output_dir().empty() ? "" : " and saved") +
                   ", but not calibrated: " + uncalibrated);
  }
  return summary;
}

/// All go on from the checkpoint that the rank that leads has found, at the same time, or from none.
Status ResumeTogether(JobRun& run, RankGroup& ranks, const std::string& resume) {
  Result<std::string> found = std::string();
  if (ranks.leads()) found = run.FindCheckpoint(resume);
  std::string folder = found.ok() ? *found : "";
  MR_TRY(ranks.FromLeader(&folder));
  MR_TRY(ranks.Agree(found.status()));
  if (ranks.leads()) return ranks.Agree(run.Resume());
  if (!folder.empty()) found = run.FindCheckpoint(folder);
  return ranks.Agree(folder.empty() || !found.ok() ? found.status() : run.Resume());
}

}  // namespace

Result<RunSummary> RunJob(JobSession& session, const std::string& resume, const std::string& model,
                          std::stop_token stop, const RunOutput& output, FileDescriptor folder) {
  RankGroup& ranks = session.ranks();
  JobRun run(session, std::move(stop), output, std::move(folder));
  MR_TRY(ranks.Agree(run.Start(resume, model)));
  if (run.keeps()) MR_TRY(ResumeTogether(run, ranks, model == "best" ? "best" : resume));
  MR_TRY(ranks.Agree(run.MakeTrainer()));
  MR_TRY(ranks.Agree(run.Train()));
  MR_TRY(run.GatherCounts());
  MR_TRY(ranks.Agree(run.KeepBest()));
  if (!ranks.leads()) {
    MR_TRY(ranks.Agree(Status::Ok()));
    return run.Summary();
  }
  // The others have parts of the tables that are saved: they wait.
  Result<RunSummary> summary = run.Finish();
  MR_TRY(ranks.Agree(summary.status()));
  return summary;
}

}  // namespace millrace
