#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/subprocess.h"
#include "trainer/job.h"
#include "trainer/run_hooks.h"

namespace millrace {

/// Saves what a job has trained so far for the predictor (or, of a program, its variables) into `folder`. Nobody trains
/// meanwhile.
Status SaveJobModel(const Job& job, const std::string& folder);

/// Saves a model after every save_interval passes of an incremental job, to OUTPUT_DIR/models/NAME, and runs its
/// save_command on it.
class PassModels final : public PassSaver {
 public:
  /// Starts the guard that ends commands with this process, if there is a command. The job must outlive the object.
  static Result<std::unique_ptr<PassModels>> Create(const Job& job);

  /// A model that cannot be written is a failure. A command that fails is not: it is told on standard error at once and
  /// kept in failures(). A stop request ends the command, which then counts as failed.
  Status SavePass(int64_t pass, bool is_last, std::stop_token stop) override;

  /// What became of commands that failed, a message each.
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  PassModels(const Job& job, std::unique_ptr<ChildGuard> guard) : job_(&job), guard_(std::move(guard)) {}
  Status RunCommand(const std::string& folder, const std::string& name, const std::stop_token& stop) const;

  const Job* job_;
  std::unique_ptr<ChildGuard> guard_;  ///< null without a command
  std::vector<std::string> failures_;
};

}  // namespace millrace
