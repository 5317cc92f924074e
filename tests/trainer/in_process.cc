#include "trainer/in_process.h"

#include <glog/logging.h>

#include <filesystem>
#include <thread>

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

int ThreadsNow() {
#ifdef __SANITIZE_THREAD__
  // The sanitizer's own thread starts with the first of ours and stays; it is to be there from the first count on.
  static const bool started = (std::thread([] {}).join(), true);
  CHECK(started);
#endif
  int threads = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++threads;
  return threads;
}

}  // namespace millrace
