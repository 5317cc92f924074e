#include "trainer/in_process.h"

#include <glog/logging.h>

#include "trainer/builtin_trainers.h"
#include "trainer/default_environment.h"

namespace millrace {

const Environment& DefaultEnvironment() {
  static const Environment environment = MakeDefaultEnvironment().value();
  return environment;
}

std::shared_ptr<const CompiledJob> CompileJob(const std::string& path, const std::string& output_dir,
                                              const std::vector<std::string>& overrides,
                                              const Environment& environment) {
  ConfigRequest request;
  request.file = path;
  request.overrides = overrides;
  request.known = NamesOf(environment);
  Result<LoadedConfig> config = LoadTrainerDesc(request);
  CHECK(config.ok()) << config.status().ToString();
  auto job = CompiledJob::Create(std::move(config).value(), environment, output_dir);
  CHECK(job.ok()) << job.status().ToString();
  return std::move(job).value();
}

std::unique_ptr<JobSession> MakeJob(const std::string& path, const std::string& output_dir,
                                    const std::vector<std::string>& overrides, const Environment& environment) {
  Result<std::unique_ptr<JobSession>> session =
      JobSession::Create(CompileJob(path, output_dir, overrides, environment));
  CHECK(session.ok()) << session.status().ToString();
  return std::move(session).value();
}

Result<RunReport> TrainJob(JobSession& session, std::stop_token stop) {
  MR_TRY(session.InitParameters());
  MR_ASSIGN(const std::unique_ptr<Trainer> trainer, CreateTrainer(session, {}));
  return trainer->Run(std::move(stop));
}

}  // namespace millrace
