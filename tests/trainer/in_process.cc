#include "trainer/in_process.h"

#include <glog/logging.h>

#include "app/default_environment.h"

namespace millrace {

const Environment& DefaultEnvironment() {
  static const Environment environment = MakeDefaultEnvironment().value();
  return environment;
}

std::unique_ptr<Job> MakeJob(const std::string& path, const std::string& output_dir,
                             const std::vector<std::string>& overrides, const Environment& environment) {
  ConfigRequest request;
  request.file = path;
  request.overrides = overrides;
  request.known = NamesOf(environment);
  Result<LoadedConfig> config = LoadTrainerDesc(request);
  CHECK(config.ok()) << config.status().ToString();
  Result<std::unique_ptr<Job>> job = Job::Create(std::move(config).value(), environment, output_dir);
  CHECK(job.ok()) << job.status().ToString();
  return std::move(job).value();
}

Result<RunReport> TrainJob(Job& job, std::stop_token stop) {
  MR_TRY(job.InitParameters());
  MR_ASSIGN(const std::unique_ptr<Trainer> trainer, CreateTrainer(job, {}));
  return trainer->Run(std::move(stop));
}

}  // namespace millrace
