#include "trainer/job_run.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/file.h"
#include "core/replace_folder.h"
#include "program/program_files.h"
#include "trainer/evaluator.h"
#include "trainer/feature_importance.h"
#include "trainer/job_checkpointer.h"
#include "trainer/pass_models.h"
#include "trainer/run_recorder.h"
#include "trainer/trainer.h"

namespace millrace {
namespace {

Status SaveResults(Job& job, const RunReport& report, const RunSummary& summary) {
  if (job.desc().infer()) {
    return job.output_dir().empty() ? Status::Ok()
                                    : WriteFileAtomically(job.output_dir() + "/infer.json", RunJson(summary));
  }
  if (job.desc().program().has_save_dir() && !summary.interrupted) {
    MR_TRY(SaveVariables(job.model().main, job.model().startup, job.desc().program().save_dir(), job.root()));
  }
  if (!summary.interrupted) {
    for (const ModelExport& wanted : job.exports()) MR_TRY(wanted.Write(job.root()).Context(wanted.folder()));
  }
  if (job.output_dir().empty()) return Status::Ok();
  const bool has_prediction = !job.model().prediction.empty();
  if (job.desc().output().save_inference_model() && has_prediction && !summary.interrupted) {
    MR_TRY(SaveJobModel(job, job.output_dir() + "/model"));
  }
  if (!report.chrome_trace.empty()) {
    MR_TRY(WriteFileAtomically(job.output_dir() + "/trace.json", report.chrome_trace));
  }
  return WriteFileAtomically(job.output_dir() + "/run.json", RunJson(summary));
}

/// With early stopping or keep_best, puts the model of the best evaluation in the place of the last one.
Status KeepBestModel(Job& job, JobCheckpointer& checkpointer, const std::stop_token& stop, RunReport* report) {
  if (report->interrupted || !report->state.has_best || report->state.evaluations_since_best == 0) return Status::Ok();
  MR_ASSIGN(const std::optional<RunState> best, checkpointer.RestoreBest(report->state));
  report->is_best_restored = best.has_value();
  if (!best.has_value() || report->best_evaluation.has_value()) return Status::Ok();
  // It was measured by an earlier run.
  MR_ASSIGN(const std::unique_ptr<Evaluator> evaluator, Evaluator::Create(job, *job.eval_dataset()));
  Result<EvalReport> evaluation = evaluator->Run(*best, stop);
  if (!evaluation.ok() && stop.stop_requested()) return Status::Ok();
  MR_ASSIGN(report->best_evaluation, std::move(evaluation));
  return Status::Ok();
}

Status CheckBestCanBeKept(const TrainerDesc& desc) {
  const bool watches = desc.eval().has_early_stopping() || !desc.checkpoint().keep_best().empty();
  if (!watches || !desc.program().has_save_dir()) return Status::Ok();
  return InvalidConfig(
      "program.save_dir is to hold the best model, which is kept as a checkpoint until the end: give --output_dir, or "
      "leave out eval.early_stopping and checkpoint.keep_best");
}

/// Tells the user what the checkpointer has to say since the last call.
void PrintNotes(JobCheckpointer& checkpointer) {
  for (const std::string& note : checkpointer.TakeNotes()) std::fprintf(stderr, "%s\n", note.c_str());
}

Status ReportImportance(Job& job, const std::stop_token& stop) {
  MR_ASSIGN(const ImportanceReport report, MeasureFeatureImportance(job, stop));
  std::fputs(ImportanceTable(report).c_str(), stderr);
  if (job.output_dir().empty()) return Status::Ok();
  return WriteFileAtomically(job.output_dir() + "/feature_importance.json", ImportanceJson(report));
}

/// Makes the folder, and keeps other runs out of it while what is returned is open; where a file system knows no locks
/// nobody is kept out.
Result<FileDescriptor> MakeOutputFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return IoError("cannot make the output folder \"" + folder + "\": " + error.message());
  FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open() && ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return InvalidConfig("another run is writing to the output folder \"" + folder +
                         "\": wait for its end, or name another --output_dir");
  }
  return opened;
}

Status CheckReplacedFolders(const Job& job) {
  const bool saves = job.desc().output().save_inference_model() && !job.model().prediction.empty();
  if (saves && !job.output_dir().empty()) MR_TRY(CheckReplaced(job.output_dir() + "/model", {"MODEL"}));
  for (const ModelExport& planned : job.exports()) {
    MR_TRY(CheckReplaced(planned.folder(), {"model.pdmodel", "offline.onnx"}));
  }
  return Status::Ok();
}

}  // namespace

Result<RunSummary> RunJob(Job& job, const std::string& resume, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  const bool keeps = !job.output_dir().empty();
  const bool infer = job.desc().infer();
  const bool measures = job.desc().has_feature_importance() && !infer;
  if (measures) MR_TRY(CheckFeatureImportance(job));
  if (!keeps && resume != "never") {
    return InvalidConfig("--resume=" + resume + " needs the folder of the earlier run: give --output_dir");
  }
  if (!keeps && !infer) {
    MR_TRY(CheckBestCanBeKept(job.desc()));
    if (job.is_incremental() && job.desc().incremental().save_interval() > 0) {
      return InvalidConfig("incremental saves models: give --output_dir, or set save_interval: 0");
    }
  }
  if (!infer) MR_TRY(CheckReplacedFolders(job));
  std::unique_ptr<JobCheckpointer> checkpointer;
  std::optional<RunState> resumed;
  FileDescriptor folder;
  if (keeps) {
    MR_ASSIGN(folder, MakeOutputFolder(job.output_dir()));
    if (!infer || resume != "never") {
      MR_ASSIGN(checkpointer, JobCheckpointer::Create(job, stop, stderr));
    }
  }
  MR_TRY(job.InitParameters(stop));
  if (checkpointer != nullptr) {
    MR_ASSIGN(resumed, checkpointer->Resume(resume));
    PrintNotes(*checkpointer);
  }
  MR_ASSIGN(const std::unique_ptr<RunRecorder> recorder,
            RunRecorder::Create(job, resumed.has_value() && !infer ? resumed->step : -1, stderr, stop));
  std::unique_ptr<PassModels> models;
  if (job.is_incremental() && keeps) {
    MR_ASSIGN(models, PassModels::Create(job));
  }
  TrainerHooks hooks{checkpointer.get(), recorder.get(), models.get(), std::move(resumed), {}};
  hooks.on_resumed = [&checkpointer, &recorder] {
    MR_TRY(checkpointer->GoOn());
    return recorder->GoOn();
  };
  // What was trained before says nothing about the lines of an inference.
  if (infer) hooks = {nullptr, recorder.get(), nullptr, std::nullopt, {}};
  MR_ASSIGN(std::unique_ptr<Trainer> trainer, CreateTrainer(job, std::move(hooks)));
  Result<RunReport> trained = trainer->Run(stop);
  if (checkpointer != nullptr) PrintNotes(*checkpointer);
  MR_ASSIGN(RunReport report, std::move(trained));
  trainer.reset();
  recorder->ClearProgress();
  if (checkpointer != nullptr && !infer) {
    MR_TRY(KeepBestModel(job, *checkpointer, stop, &report));
    PrintNotes(*checkpointer);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RunSummary summary = Summarize(report, job.workers(), seconds.count());
  if (models != nullptr) summary.save_failures = models->failures();
  summary.infer = infer;
  summary.is_program = job.desc().has_program();
  summary.odd_loss_labels = job.odd_labels().of_losses();
  summary.odd_metric_labels = job.odd_labels().of_measures();
  MR_TRY(SaveResults(job, report, summary));
  if (measures && !summary.interrupted) {
    const Status measured = ReportImportance(job, stop);
    summary.interrupted = measured.code() == StatusCode::kCancelled;
    if (!summary.interrupted) MR_TRY(measured);
  }
  std::fputs(ClosingBlock(summary, job.output_dir()).c_str(), stderr);
  return summary;
}

}  // namespace millrace
