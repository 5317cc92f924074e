#include "trainer/job_run.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/file.h"
#include "program/program_files.h"
#include "serving/inference_model.h"
#include "trainer/job_checkpointer.h"
#include "trainer/run_recorder.h"
#include "trainer/trainer.h"

namespace millrace {
namespace {

Status SaveModel(const Job& job) {
  InferenceSource source;
  source.test = &job.model().test;
  source.startup = &job.model().startup;
  source.root = &job.root();
  source.data_desc = &job.desc().data_desc();
  source.prediction = job.model().prediction;
  source.label = job.model().label;
  for (const LayerDesc& layer : job.desc().model().layer()) {
    if (layer.has_embedding()) source.pooled.push_back(layer.name());
  }
  source.seed = job.desc().seed();
  return SaveInferenceModel(source, job.output_dir() + "/model");
}

Status SaveResults(const Job& job, const RunReport& report, const RunSummary& summary) {
  if (job.desc().program().has_save_dir() && !summary.interrupted) {
    MR_TRY(SaveVariables(job.model().main, job.desc().program().save_dir(), job.root()));
  }
  if (job.output_dir().empty()) return Status::Ok();
  const bool has_prediction = !job.model().prediction.empty();
  if (job.desc().output().save_inference_model() && has_prediction && !summary.interrupted) MR_TRY(SaveModel(job));
  if (!report.chrome_trace.empty()) {
    MR_TRY(WriteFileAtomically(job.output_dir() + "/trace.json", report.chrome_trace));
  }
  return WriteFileAtomically(job.output_dir() + "/run.json", RunJson(summary));
}

Status MakeOutputFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? IoError("cannot make the output folder \"" + folder + "\": " + error.message()) : Status::Ok();
}

}  // namespace

Result<RunSummary> RunJob(Job& job, const std::string& resume, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  const bool keeps = !job.output_dir().empty();
  if (!keeps && resume != "never") {
    return InvalidConfig("--resume=" + resume + " needs the folder of the earlier run: give --output_dir");
  }
  std::unique_ptr<JobCheckpointer> checkpointer;
  std::optional<RunState> resumed;
  if (keeps) {
    MR_TRY(MakeOutputFolder(job.output_dir()));
    MR_ASSIGN(checkpointer, JobCheckpointer::Create(job));
  }
  MR_TRY(job.InitParameters());
  if (keeps) {
    MR_ASSIGN(resumed, checkpointer->Resume(resume));
    for (const std::string& note : checkpointer->notes()) std::fprintf(stderr, "%s\n", note.c_str());
  }
  MR_ASSIGN(const std::unique_ptr<RunRecorder> recorder,
            RunRecorder::Create(job, resumed.has_value() ? resumed->step : -1, stderr));
  TrainerHooks hooks{checkpointer.get(), recorder.get(), std::move(resumed)};
  MR_ASSIGN(const std::unique_ptr<Trainer> trainer, CreateTrainer(job, std::move(hooks)));
  MR_ASSIGN(const RunReport report, trainer->Run(stop));
  recorder->ClearProgress();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RunSummary summary = Summarize(report, job.workers(), seconds.count());
  MR_TRY(SaveResults(job, report, summary));
  std::fputs(ClosingBlock(summary, job.output_dir()).c_str(), stderr);
  return summary;
}

}  // namespace millrace
