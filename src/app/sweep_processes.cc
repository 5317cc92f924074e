#include "app/sweep_processes.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "core/child_program.h"
#include "core/file.h"
#include "core/harmless_text.h"
#include "core/number_format.h"
#include "core/replace_folder.h"
#include "core/shortened.h"
#include "device_worker/device_worker.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookEvery{50};

int ThreadsOf(const SweepJob& job) { return std::max(1, job.desc.thread_num()); }

/// The line of a training's log that says why it failed, or the last one that says something.
std::string ReasonIn(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return "";
  const size_t last = text->find_last_not_of(" \n\r\t");
  if (last == std::string::npos) return "";
  // Mistakes of a job are told by their places, with the line of the file below.
  size_t failure = text->rfind("\ntrainer: ");
  if (failure == std::string::npos) failure = text->find(": error: ");
  const size_t before = text->find_last_of("\n\r", failure != std::string::npos ? failure : last);
  const size_t start = before == std::string::npos ? 0 : before + 1;
  const size_t end = std::min(text->find('\n', start), last + 1);
  constexpr size_t kMost = 300;
  return Harmless(Shortened(std::string_view(*text).substr(start, end - start), kMost));
}

}  // namespace

struct SweepProcesses::Running {
  size_t number = 0;
  const SweepJob* job = nullptr;
  std::string log;
  Clock::time_point start;
  ChildProgram program;
};

Result<std::unique_ptr<SweepProcesses>> SweepProcesses::Create(const SweepRequest& request,
                                                               const std::string& output_dir, int at_once) {
  std::unique_ptr<SweepProcesses> processes(new SweepProcesses(request, output_dir, at_once));
  std::error_code error;
  processes->program_ = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return IoError("cannot find out where the trainer itself is: " + error.message());
  MR_ASSIGN(processes->guard_, ChildGuard::Create());
  return processes;
}

std::vector<std::string> SweepProcesses::CommandOf(const Training& training) const {
  std::vector<std::string> command = {program_, "--trainer_desc=" + request_->trainer_desc,
                                      "--output_dir=" + FolderOf(*training.job),
                                      training.resumes ? "--resume=auto" : "--resume=never"};
  for (const std::string& field : request_->overrides) command.push_back("--set=" + field);
  for (const std::string& field : training.job->overrides) command.push_back("--set=" + field);
  if (training.epochs > 0) command.push_back("--set=epochs=" + std::to_string(training.epochs));
  return command;
}

Result<SweepProcesses::Running> SweepProcesses::Start(const Training& training, size_t number) {
  const std::string folder = FolderOf(*training.job);
  const std::string log = folder + "/log.txt";
  MR_TRY(MakeFolder(folder));
  std::error_code error;
  if (!training.resumes) std::filesystem::remove(log, error);
  MR_ASSIGN(ChildProgram program, ChildProgram::Start(CommandOf(training), log, *guard_));
  std::fprintf(stderr, "%zu of %zu, %s: started\n", number + 1, known_, training.job->name.c_str());
  return Running{number, training.job, log, Clock::now(), std::move(program)};
}

bool SweepProcesses::HasRoom(const std::vector<Running>& running, const Training& next) const {
  if (running.empty()) return true;
  if (at_once_ > 0) return running.size() < static_cast<size_t>(at_once_);
  int threads = ThreadsOf(*next.job);
  for (const Running& one : running) threads += ThreadsOf(*one.job);
  return threads <= static_cast<int>(UsableProcessors().size());
}

SweepProcesses::Outcome SweepProcesses::Tell(const Running& ended, int exit_code, bool is_stopping) const {
  const std::chrono::duration<double> seconds = Clock::now() - ended.start;
  const char* const name = ended.job->name.c_str();
  constexpr int kInterrupted = 130;
  if (exit_code == 0) {
    std::fprintf(stderr, "%zu of %zu, %s: done, %s s\n", ended.number + 1, known_, name,
                 FixedNumber(seconds.count(), 1).c_str());
    return Outcome::kFinished;
  }
  if (is_stopping && exit_code == kInterrupted) {
    std::fprintf(stderr, "%zu of %zu, %s: stopped\n", ended.number + 1, known_, name);
    return Outcome::kStopped;
  }
  const std::string how = exit_code == ChildProgram::kNotKnown ? "nobody knows how it ended, for SIGCHLD is ignored"
                                                               : "exit code " + std::to_string(exit_code);
  std::fprintf(stderr, "%zu of %zu, %s: failed (%s), see %s: %s\n", ended.number + 1, known_, name, how.c_str(),
               ended.log.c_str(), ReasonIn(ended.log).c_str());
  return Outcome::kFailed;
}

std::vector<SweepProcesses::Outcome> SweepProcesses::Run(const std::vector<Training>& trainings,
                                                         const std::stop_token& stop) {
  known_ = trainings.size();
  std::vector<Outcome> outcomes(trainings.size(), Outcome::kNotRun);
  std::vector<Running> running;
  std::mutex mutex;
  std::condition_variable_any wake;
  bool is_stopping = false;
  for (size_t next = 0; next < trainings.size() || !running.empty();) {
    if (stop.stop_requested() && !std::exchange(is_stopping, true)) {
      next = trainings.size();
      for (const Running& one : running) one.program.Signal(SIGTERM);
    }
    while (next < trainings.size() && HasRoom(running, trainings[next])) {
      const Training& training = trainings[next];
      const size_t number = next++;
      SweepJob job = *training.job;
      if (training.epochs > 0) job.desc.set_epochs(training.epochs);
      if (training.resumes && HasFinished(FolderOf(job), job)) {
        outcomes[number] = Outcome::kFinishedBefore;
        std::fprintf(stderr, "%zu of %zu, %s: done before\n", number + 1, known_, job.name.c_str());
        continue;
      }
      Result<Running> started = Start(training, number);
      if (started.ok()) {
        running.push_back(std::move(started).value());
      } else {
        outcomes[number] = Outcome::kFailed;
        std::fprintf(stderr, "%zu of %zu, %s: failed: %s\n", number + 1, known_, job.name.c_str(),
                     started.status().message().c_str());
      }
    }
    std::vector<Running> left;
    for (Running& one : running) {
      const std::optional<int> exit_code = one.program.ExitCode();
      if (exit_code.has_value()) {
        outcomes[one.number] = Tell(one, *exit_code, is_stopping);
      } else {
        left.push_back(std::move(one));
      }
    }
    const bool has_changed = left.size() < running.size();
    running.swap(left);
    if (has_changed || running.empty()) continue;
    std::unique_lock lock(mutex);
    // A stop request is news once; then only the trainings are waited for.
    if (is_stopping) {
      wake.wait_for(lock, kLookEvery);
    } else {
      wake.wait_for(lock, stop, kLookEvery, [] { return false; });
    }
  }
  return outcomes;
}

}  // namespace millrace
