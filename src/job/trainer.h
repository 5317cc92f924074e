#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "job/job_session.h"
#include "job/run_hooks.h"

namespace millrace {

/// What a trainer is given beside its session; all of it outlives the trainer.
struct TrainerHooks {
  Checkpointer* checkpointer = nullptr;  ///< null: no checkpoints
  RunReporter* reporter = nullptr;       ///< null: nobody looks
  PassSaver* pass_saver = nullptr;       ///< null: passes leave no models
  /// Where an earlier run stopped; its parameters are in the session's root scope already.
  std::optional<RunState> resume = {};
  /// Called once in a run with `resume`: after the earlier run's state was taken over, before training goes on. A run
  /// that is refused before this call leaves what the earlier one wrote as it is. May be empty. Its failure is the
  /// run's.
  std::function<Status()> on_resumed = {};
  /// Called by the trainer's thread after each shrink of a table. May be empty. Its failure is the run's.
  std::function<Status(const TableShrink&)> on_shrunk = {};
  RunState* reached = nullptr;  ///< where the run stands when it ends, also by a failure; null: nobody asks
};

/// Runs a session of a job from where it stands to its end.
class Trainer {
 public:
  virtual ~Trainer() = default;
  /// Trains all passes. A stop request ends it at a batch boundary, with a checkpoint, within a second: ok, and
  /// `interrupted` is set. The first failure of any thread comes back after all threads have ended.
  virtual Result<RunReport> Run(std::stop_token stop) = 0;
};

}  // namespace millrace
