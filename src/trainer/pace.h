#pragma once

#include <memory>

#include "device_worker/device_worker.h"
#include "job/job_session.h"
#include "trainer/training_run.h"

namespace millrace {

/// Decides how far this rank's workers train and when they pause. Only a Pace knows whether its rank trains alone, in
/// step with others (dist { update: SYNC }), or asynchronously (ASYNC, SSP and GEO, ranks/rank_pace.h).
///
/// Belongs to the trainer's thread, except for functions that any thread may call.
class Pace {
 public:
  virtual ~Pace() = default;

  /// Adds to the parts of worker `index` what paces it. kInvalidConfig for what cannot be trained so.
  virtual Status AddTo(int index, Dataset& dataset, WorkerParts* parts) = 0;
  /// Where a worker gets its batches from instead of `source`; null: there. Belongs to its thread, which destroys it
  /// before the pass ends, and with it a batch that it has taken and that is not trained.
  virtual std::unique_ptr<BatchSource> SourceOf(int worker, BatchSource& source) = 0;
  /// Before a pass: a collective comes between this and the first batch.
  virtual void StartPass() = 0;
  /// Asks the workers of all ranks to pause after their current batches. Any thread.
  virtual void AskForPause(bool is_stop) = 0;
  /// A worker of this rank has failed: asks other ranks, if there are any, to stop. Any thread.
  virtual void ReportFailure() = 0;
  /// Ends a wait for batches of which a step would be made. Any thread.
  virtual void StopReading() = 0;
  /// This rank's workers have ended. Whether those of all have: otherwise PauseGate says when to stand still, and this
  /// is asked again now and then, since a rank may be lost meanwhile.
  virtual Result<bool> HaveAllEnded() = 0;
  /// What paused ranks find.
  struct Standing {
    bool have_all_ended = false;
    bool has_one_failed = false;
  };
  /// Waits until all ranks have paused, with the same dense parameters and all updates applied. A collective.
  virtual Result<Standing> StandStill(bool has_failed) = 0;
  /// After a pause: if another one was called during it, makes the workers pause again.
  virtual void LookForPause() = 0;
};

/// kInvalidConfig for what a job with dist { update: SYNC } cannot train, as MakePace and AddTo would find it. Needs
/// the parameters.
Status CheckStep(JobSession& session, const Frame& frame);

/// The pace of the session's job. What is given outlives it.
Result<std::unique_ptr<Pace>> MakePace(JobSession& session, TrainingRun& run, PauseGate& gate);

}  // namespace millrace
