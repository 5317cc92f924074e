#include "trainer/pass_models.h"

#include <cstdio>
#include <filesystem>

#include "program/program_files.h"
#include "serving/inference_model.h"

namespace millrace {

Status SaveJobModel(const Job& job, const std::string& folder) {
  if (job.model().prediction.empty()) return SaveVariables(job.model().main, job.model().startup, folder, job.root());
  InferenceSource source;
  source.test = &job.model().test;
  source.startup = &job.model().startup;
  source.root = &job.root();
  source.data_desc = &job.desc().data_desc();
  source.prediction = job.model().prediction;
  source.label = job.model().label;
  source.pooled = job.pooled();
  source.seed = job.desc().seed();
  return SaveInferenceModel(source, folder);
}

Result<std::unique_ptr<PassModels>> PassModels::Create(const Job& job) {
  std::unique_ptr<ChildGuard> guard;
  if (!job.desc().incremental().save_command().empty()) {
    MR_ASSIGN(guard, ChildGuard::Create());
  }
  return std::unique_ptr<PassModels>(new PassModels(job, std::move(guard)));
}

Status PassModels::SavePass(int64_t pass, bool is_last, std::stop_token stop) {
  const int64_t interval = job_->desc().incremental().save_interval();
  if (interval == 0 || !(is_last || (pass + 1) % interval == 0)) return Status::Ok();
  const std::string& name = job_->PassName(pass);
  const std::string models = job_->output_dir() + "/models";
  std::error_code error;
  std::filesystem::create_directories(models, error);
  if (error) return IoError("cannot make the folder \"" + models + "\": " + error.message());
  const std::string folder = models + "/" + name;
  MR_TRY(SaveJobModel(*job_, folder));
  std::fprintf(stderr, "model of pass \"%s\": %s\n", name.c_str(), folder.c_str());
  if (guard_ == nullptr) return Status::Ok();
  const Status done = RunCommand(folder, name, stop);
  if (done.ok()) return Status::Ok();
  failures_.push_back("save_command of pass \"" + name + "\": " + done.message());
  std::fprintf(stderr, "warning: %s\n", failures_.back().c_str());
  return Status::Ok();
}

Status PassModels::RunCommand(const std::string& folder, const std::string& name, const std::stop_token& stop) const {
  SubprocessOptions options;
  options.argv = ShellArgv(job_->desc().incremental().save_command(), {folder, name});
  options.label = "save_command";
  MR_ASSIGN(const std::unique_ptr<ByteSource> output, StartSubprocess(std::move(options), *guard_));
  char bytes[4096];
  while (true) {
    MR_ASSIGN(const size_t count, output->Read(bytes, stop));
    if (count == 0) return Status::Ok();
    std::fwrite(bytes, 1, count, stderr);
  }
}

}  // namespace millrace
