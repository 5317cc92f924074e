#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_store.h"
#include "config/changed_fields.h"
#include "job/job_session.h"
#include "job/run_hooks.h"
#include "runtime/variable_store.h"

namespace millrace {

/// Saves checkpoints of a job for `--resume`, and resumes from them.
///
/// A checkpoint holds every persistable variable, the metrics' sums and, in its manifest, how far the input was
/// trained. One thread, while no worker trains.
class JobCheckpointer final : public Checkpointer {
 public:
  /// Looks at the input files of the first pass, and shows how far it is on `terminal` when that takes long.
  /// Checkpoints are in OUTPUT_DIR/checkpoints. The session must outlive the object. A stop request ends a look at
  /// files: here and in Resume, what Find checks and Resume loads, with kCancelled. Save goes on without the look, and
  /// then shows on `terminal` how far it is.
  static Result<std::unique_ptr<JobCheckpointer>> Create(JobSession& session, std::stop_token stop,
                                                         std::FILE* terminal);

  /// For a rank that does not lead: Find, Resume and Restore alone, which change nothing in the folder.
  static std::unique_ptr<JobCheckpointer> Follow(JobSession& session, std::stop_token stop, std::FILE* terminal);

  /// Finds what Resume goes on from. `resume` is "never" (nothing), "auto" (the newest whole checkpoint, or nothing),
  /// "best" (of an `infer` job: that of the best evaluation; kInvalidConfig when none is kept), or a checkpoint's
  /// folder. Returns the folder; empty: nothing. Damaged checkpoints that "auto" passes over are in TakeNotes; a
  /// checkpoint that is whole but of another job is kInvalidConfig and says what differs.
  Result<std::string> Find(const std::string& resume);
  /// Loads the parameters of what Find found into the session, whose InitParameters has run; nullopt: the run starts
  /// anew. What has changed of the job and takes effect is in TakeNotes, a line each. After a start anew "auto" finds
  /// this run's checkpoints alone, whether it has written one yet or not.
  Result<std::optional<RunState>> Resume();

  /// The run does go on from what Resume returned: from here on "auto" finds what belongs to it alone.
  Status GoOn() { return store_.BeginRun(run_id_); }

  Status Save(const RunState& state, const CheckpointReason& reason, const std::function<Status()>& check) override;
  double SecondsToSave() override;

  /// The checkpoint of the best evaluation of a run that ended at `state`. Empty, with a line in TakeNotes, when it is
  /// not in the folder (it is another folder's, or was damaged since). kCancelled after a stop request.
  Result<std::string> FindBest(const RunState& state, const std::stop_token& stop);
  /// Puts the parameters of that checkpoint in place of those of the run, and returns where that model stood; for a job
  /// whose frames are gone. Each rank does it. kCancelled after a stop request, with parameters of no use.
  Result<RunState> Restore(const std::string& folder, const std::stop_token& stop);

  /// What the user is to know of Find, Resume, Save and FindBest, a line each; each is given out once.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }
  const std::string& folder() const { return store_.folder(); }

 private:
  JobCheckpointer(JobSession& session, CheckpointStore store, uint64_t run_id, std::stop_token stop,
                  std::FILE* terminal)
      : session_(&session),
        job_(&session.job()),
        store_(std::move(store)),
        run_id_(run_id),
        stop_(std::move(stop)),
        terminal_(terminal) {}
  Result<std::optional<RunState>> StartAnew();
  Result<std::optional<FoundCheckpoint>> FindCheckpoint(const std::string& resume);
  std::string Fingerprint() const;
  /// Whether the job can go on from a checkpoint; fills changes_.
  Status Fits(const CheckpointManifest& manifest);
  /// Of a program: whether its startup program makes what it made.
  Status CompareStartup(const CheckpointManifest& manifest, const std::set<std::string>& settings) const;
  /// Takes the variables from a checkpoint, but for learning rates, which are the job's to say; of those that differ
  /// and that no field tells of, `rates` says how.
  Status RestoreState(const FoundCheckpoint& found, std::vector<std::string>* rates, const std::stop_token& stop);
  /// Warns when resuming within a pass of a reader whose order does not repeat.
  void NoteOrderOfReaders(const RunState& state);
  /// What the job has otherwise than the run that wrote the checkpoint, and what follows of it for the best evaluation.
  void TakeChanges(const CheckpointManifest& manifest, RunState* state);
  void ForgetBest(const char* why, RunState* state);
  Status CheckInput(const CheckpointManifest& manifest);
  /// A run that goes on keeps its rows: lines are drawn by the rule that drew them before.
  Status DrawLinesAsIn(const CheckpointManifest& manifest);
  /// Whether the files of the epoch in hand hold what they held. `why` ends a refusal.
  Status CheckFiles(const CheckpointManifest& manifest, const std::string& why);
  /// LookAtFiles of rows in memory; false, and does nothing, where they are in files.
  Result<bool> LookAtRows(const std::vector<std::string>& files);
  /// Looks at the files that pass `pass` trains on: once, before more of them than that can have changed.
  Status LookAtFiles(int64_t pass, const std::stop_token& stop);
  Status CheckPasses(const CheckpointManifest& manifest) const;

  JobSession* session_;
  const CompiledJob* job_;  ///< of the session
  CheckpointStore store_;
  uint64_t run_id_;
  std::stop_token stop_;
  std::FILE* terminal_;
  std::optional<SaveSize> size_;          ///< of the session's variables; nullopt: not looked at yet
  double bytes_a_second_ = 400e6;         ///< that a checkpoint is written with: at first a guess
  std::optional<FoundCheckpoint> found_;  ///< by Find, for Resume
  std::vector<std::string> notes_;
  std::vector<ChangedField> changes_;           ///< of the checkpoint that Fits was asked about last; those that may be
  std::vector<StoredInputState> input_states_;  ///< of pass looked_at_
  int64_t looked_at_ = -1;
};

}  // namespace millrace
