#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "checkpoint.pb.h"
#include "core/long_work.h"
#include "core/status.h"
#include "framework.pb.h"
#include "metrics/metric_set.h"
#include "runtime/scope.h"
#include "runtime/variable_store.h"

namespace millrace {

/// Checks that a job can resume from a checkpoint. kInvalidConfig with the differences if it cannot.
using CheckpointFits = std::function<Status(const CheckpointManifest& manifest)>;

/// A checkpoint that was found whole and fits the job.
struct FoundCheckpoint {
  std::string folder;
  CheckpointManifest manifest;
  std::string metrics;  ///< what CheckpointContent::metrics were written as, one after another
};

/// The input of CheckpointStore::Write. Write fills in the manifest's variables and files.
struct CheckpointContent {
  CheckpointManifest manifest;
  std::vector<const MetricTotals*> metrics;
  bool is_best = false;  ///< makes the link `best` point here
  /// How many checkpoints there are from one with all rows of a large table to before the next such one, at most; those
  /// between have what changed. 1: all have all rows.
  int full_every = 1;
  bool hurries = false;  ///< as EarlierSave::hurries
  /// Written without a request: the checkpoint does not count toward `keep`, and a later checkpoint replaces it.
  bool is_between = false;
};

/// The error for a `--resume` folder without a MANIFEST: kInvalidConfig. It says whether `folder` is missing or is a
/// saved model.
Status NoCheckpoint(const std::string& folder);

/// The folder of a job's checkpoints: `step-000000001200/` for each, and the link `best`.
///
/// A checkpoint is written beside, synced, then renamed: after a crash there is a whole one or none. docs/formats/
/// checkpoint.md has the files. One thread.
class CheckpointStore {
 public:
  /// Creates the folder and removes half-written checkpoints of killed runs. kIo if that fails. The store keeps the
  /// newest `keep` checkpoints (at least 1) and the best one. It reads or writes up to `threads` files concurrently.
  static Result<CheckpointStore> Create(const std::string& folder, int keep, int threads);

  /// A read-only store, which can be used while another process writes. Changes nothing in the folder.
  static CheckpointStore Open(const std::string& folder, int threads) { return {folder, 1, threads}; }

  /// Makes `run_id` the current run. From now on FindNewest skips checkpoints of other runs; the first Write removes
  /// them. kIo with the system's reason.
  Status BeginRun(uint64_t run_id) const;

  /// Writes a checkpoint of step `content.manifest.step()`; one of the same step is replaced in one step. Then removes
  /// what is beyond `keep`, checkpoints of later steps, which a run that went on from an earlier one has left behind,
  /// and those of other runs (another run_id). kIo with the system's reason, kCancelled after a stop request of `work`;
  /// what was there before stays whole.
  ///
  /// Large tables note from there on what changes; where `root` has still what the last Write wrote, or what ResumeFrom
  /// was told, but for these changes, the checkpoint may have them alone, beside links to the files of that one.
  Status Write(const CheckpointContent& content, const ProgramDesc& program, Scope& root, const LongWork& work = {});
  /// Declares that `root` contains the values of this checkpoint. Its large tables record their changes from now on.
  Status ResumeFrom(const FoundCheckpoint& found, const Scope& root);
  /// About how many bytes Write would write of variables, but for those that it tells LongWork::on_expected of.
  uint64_t BytesToWrite(const CheckpointContent& content, const ProgramDesc& program, const Scope& root) const;

  /// Whether the next Write may store only changes.
  bool HasEarlier() const { return last_.has_value(); }

  /// The newest checkpoint of the current run that is whole; nullopt when it has none at all. Damaged ones, and those
  /// of other runs, are appended to `*refused`, with the reason; when all of the run are damaged that is kBadData. A
  /// whole one that does not fit is kInvalidConfig and says what differs. kCancelled after a stop request.
  Result<std::optional<FoundCheckpoint>> FindNewest(const CheckpointFits& fits, std::vector<std::string>* refused,
                                                    const LongWork& work = {}) const;

  /// The checkpoint that the link `best` points to. Nullopt if the link is missing, or if its checkpoint is damaged or
  /// does not fit the job. kCancelled after a stop request.
  Result<std::optional<FoundCheckpoint>> FindBest(const CheckpointFits& fits, const LongWork& work = {}) const;

  /// The newest readable manifest of the current run, or of any run if none is known; nullopt if there is none. Does
  /// not check the checkpoint's other files.
  std::optional<CheckpointManifest> NewestManifest() const;

  /// Whether there is a checkpoint, of whatever run.
  bool HasAny() const;
  /// Whether there are checkpoints of later steps, of whatever run.
  bool HasLaterThan(int64_t step) const;

  const std::string& folder() const { return folder_; }

 private:
  CheckpointStore(std::string folder, int keep, int threads)
      : folder_(std::move(folder)), keep_(keep), threads_(threads) {}
  Status Prune(uint64_t run_id, int64_t step);
  Result<std::optional<uint64_t>> CurrentRun() const;
  EarlierSave EarlierFor(const CheckpointContent& content) const;

  std::string folder_;
  int keep_;
  int threads_;
  std::optional<EarlierSave> last_;       ///< written by this process, or resumed from
  std::map<std::string, uint64_t> runs_;  ///< the run of each folder that was written or pruned here
  std::set<std::string> between_;         ///< folders of CheckpointContent::is_between
};

/// Reads the manifest of the checkpoint to resume from, without checking its other files. `resume` is "auto" or a
/// folder. "auto" does not fail; it returns nullopt if it finds no readable manifest. For a folder: NoCheckpoint if the
/// MANIFEST is missing, or the errors of ReadManifest.
Result<std::optional<CheckpointManifest>> ManifestToResume(const std::string& resume, const std::string& output_dir);

/// The number of complete passes in the checkpoint to resume from; 0 if there is none or its manifest cannot be read.
/// `resume` is "never", "auto" or a folder. Does not check the checkpoint's other files.
int64_t CompletePasses(const std::string& resume, const std::string& output_dir);

/// An id for a new run, different from those of earlier runs.
uint64_t NewRunId();

/// The files that ReadCheckpoint compares with the manifest. Table files, the largest part, need that check only once:
/// reading a damaged one fails anyway.
enum class CheckedFiles { kAll, kButThoseOfTables };

/// Reads and checks one checkpoint folder, using all processors. kBadData if the checkpoint is damaged, kInvalidConfig
/// if it does not fit the job, kCancelled after a stop request.
Result<FoundCheckpoint> ReadCheckpoint(const std::string& folder, const CheckpointFits& fits, CheckedFiles checked,
                                       const LongWork& work = {});

/// Bytes of the files of a checkpoint.
uint64_t FileBytesOf(const CheckpointManifest& manifest);

}  // namespace millrace
