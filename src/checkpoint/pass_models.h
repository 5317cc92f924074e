#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/long_work.h"
#include "core/subprocess.h"
#include "job/job_session.h"
#include "job/run_hooks.h"

namespace millrace {

/// Saves the variables of a program's job, tables that grow as well, into `folder`: what program.init_dir and Python's
/// load_persistables read. Nobody trains meanwhile. `on_done` (or empty) is told of bytes that were written.
Status SaveProgramVariables(const JobSession& session, const RunState& state, const std::string& folder,
                            const std::function<void(uint64_t bytes)>& on_done);
/// What a model of `step` is calibrated by, where the evaluation after it found that; null: nothing.
const Calibrations* CalibrationsOf(const JobSession& session, int64_t step);
/// Why a model of `step` lacks calibrations that the job asks for; empty: it lacks none.
std::string UncalibratedText(const JobSession& session, int64_t step);

/// Saves what a job has trained so far for the predictor (or, of a program, its variables) into `folder`, with the
/// predictions that CalibrationsOf calibrates. Nobody trains meanwhile. A stop request of `work` gives it up,
/// kCancelled, with the folder as it was; variables of a program are written to their end once they are begun: an
/// earlier save in the folder is gone then. `content` is that of tables that grow, in a model.
Status SaveJobModel(const JobSession& session, const RunState& state, TableContent content, const std::string& folder,
                    const LongWork& work);

/// Saves a model after every save_interval passes of an incremental job, to OUTPUT_DIR/models/NAME, and runs its
/// save_command on it.
class PassModels final : public PassSaver {
 public:
  /// Starts the guard that ends commands with this process, if there is a command. What it prints, and what
  /// is to be said, goes to `terminal`. The session must outlive the object.
  static Result<std::unique_ptr<PassModels>> Create(const JobSession& session, std::FILE* terminal);

  /// Fails if the model cannot be written; kCancelled if a stop request ended the save or the command. A failing
  /// command is not an error: it is reported immediately and added to the failures of `state`.
  Status SavePass(bool is_last, std::stop_token stop, RunState* state) override;
  /// Runs the command again on models that still exist. If the job has no command, clears `failures`. After a stop
  /// request it returns Ok and keeps the remaining failures. kBadData for a pass that the job does not have: names come
  /// from a checkpoint and become parts of paths.
  Status Retry(std::vector<SaveFailure>* failures, std::stop_token stop) override;

 private:
  PassModels(const JobSession& session, std::unique_ptr<ChildGuard> guard, std::FILE* terminal)
      : session_(&session), job_(&session.job()), guard_(std::move(guard)), terminal_(terminal) {}
  std::string FolderOf(const std::string& name) const { return job_->output_dir() + "/models/" + name; }
  bool IsPass(const std::string& name) const;
  /// Tells the tables whose rows a model had (incremental.save_mode).
  Status TellTables() const;
  /// Nullopt on success; kCancelled after a stop request, which ends the command.
  Result<std::optional<SaveFailure>> TryCommand(const std::string& name, const std::stop_token& stop) const;
  Status RunCommand(const std::string& folder, const std::string& name, const std::stop_token& stop) const;

  const JobSession* session_;
  const CompiledJob* job_;             ///< of the session
  std::unique_ptr<ChildGuard> guard_;  ///< null without a command
  std::FILE* terminal_;
};

}  // namespace millrace
