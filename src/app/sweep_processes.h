#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "app/sweep_jobs.h"
#include "core/status.h"
#include "core/subprocess.h"

namespace millrace {

/// Runs trainings as processes, several at a time. One thread.
class SweepProcesses {
 public:
  enum class Outcome {
    kNotRun,
    kFinished,
    kFinishedBefore,  ///< by an earlier run of the sweep
    kFailed,
    kStopped,
  };
  struct Training {
    const SweepJob* job = nullptr;
    int epochs = 0;        ///< in place of the job's; 0: the job's
    bool resumes = false;  ///< goes on from what is in its folder
  };

  /// `at_once` trainings run at a time; 0: as many as there are processors for.
  static Result<std::unique_ptr<SweepProcesses>> Create(const SweepRequest& request, const std::string& output_dir,
                                                        int at_once);

  /// Runs all of them; their outcomes, in their order. After a stop request those that run are asked to stop, and the
  /// rest is not run.
  std::vector<Outcome> Run(const std::vector<Training>& trainings, const std::stop_token& stop);

  const std::string& output_dir() const { return output_dir_; }
  std::string FolderOf(const SweepJob& job) const { return output_dir_ + "/" + job.name; }

 private:
  struct Running;
  SweepProcesses(const SweepRequest& request, std::string output_dir, int at_once)
      : request_(&request), output_dir_(std::move(output_dir)), at_once_(at_once) {}
  std::vector<std::string> CommandOf(const Training& training) const;
  Result<Running> Start(const Training& training, size_t number);
  bool HasRoom(const std::vector<Running>& running, const Training& next) const;
  Outcome Tell(const Running& ended, int exit_code, bool is_stopping) const;

  const SweepRequest* request_;
  std::string output_dir_;
  int at_once_;
  std::string program_;
  std::unique_ptr<ChildGuard> guard_;
  size_t known_ = 0;  ///< trainings of the present Run
};

}  // namespace millrace
