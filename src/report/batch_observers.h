#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device_worker/device_worker.h"
#include "job/compiled_job.h"
#include "job/fetch_handler.h"
#include "job/run_hooks.h"
#include "runtime/transfer.h"

namespace millrace {

/// Fetched values in Paddle's form, a line:
///     time: [2026-01-31 12:00:00], batch: [100], loss[1]:[0.41], auc[1]:[0.78]
std::string FetchText(const FetchLine& line);

/// Hands the fetched values of worker 0 to the reporter every print_period batches, and prints them on standard output
/// where there is none. Window metrics ("batch_auc") cover the batches since the last print.
class FetchObserver final : public BatchObserver {
 public:
  /// `metrics` are the accumulators of all workers. `frames` are worker 0's. All outlive the observer.
  FetchObserver(const CompiledJob& job, const std::vector<const Frame*>& frames,
                const std::vector<MetricAccumulator*>& metrics, const SharedProgress& progress, RunReporter* reporter);
  Status OnBatch(const TrainedBatch& trained) override;
  /// A new pass: metrics start again. `window` is what an earlier run added up in it since its last print.
  void StartPass(int64_t epoch, std::optional<MetricTotals> window);
  /// What was added up since the last print; nullopt when none of it is printed. While no worker trains.
  std::optional<MetricTotals> Window() const;
  /// Adds what workers added up in the pass to `totals`, until TakeBack. While no worker trains. The rows of GAUCs go
  /// there and are copied only if windows of them are printed, which workers go on with, or in a job of ranks.
  void LendTo(MetricTotals& totals);
  /// Takes back what was lent, before workers go on; nothing when nothing is.
  void TakeBack(MetricTotals& totals);
  /// The same when all workers have ended: takes the rows of GAUCs away instead of copying them.
  void EndInto(MetricTotals& totals);

 private:
  struct FrameVariables {
    const Frame* frame;
    std::vector<const Variable*> variables;  ///< by fetch; null for metrics
  };
  void TakeMetrics();
  void AddMetric(const FetchItem& item, FetchLine::Value* value);

  const CompiledJob* job_;
  const std::vector<MetricAccumulator*>* metrics_;
  const SharedProgress* progress_;
  RunReporter* reporter_;
  std::vector<FrameVariables> frames_;
  bool fetches_totals_ = false;
  bool fetches_windows_ = false;
  bool fetches_grouped_totals_ = false;
  bool fetches_grouped_windows_ = false;
  bool is_lent_ = false;
  MetricTotals totals_;  ///< rows of GAUCs that the workers no longer have: up to the last pause or the last print
  MetricTotals window_;
  std::optional<MetricTotals> earlier_window_;  ///< of the run that this one goes on from, until the first print
  int64_t epoch_ = 0;
};

/// What fetch_config names, behind the last batch: the values that are in a worker's frame, of persistable variables
/// those that `root` has of all workers, and of an `auc` that of all their counts. Metrics have none, nor has a
/// variable without values yet.
Result<std::vector<FetchLine::Value>> FetchedVariables(const CompiledJob& job, const Frame& frame, const Scope& root);

/// Whether batches `from` (not among them) to `to` of worker 0 are too few to have a print among them.
bool PrintsNothing(const CompiledJob& job, int64_t from, int64_t to);
/// What RunReporter::OnPoint gets for the epoch `pass`, which ends in `state`: its loss, unless something of that name
/// is fetched, and its metrics. `fetched`: FetchedVariables.
FetchLine PointOfEpoch(const CompiledJob& job, const RunState& state, const PassReport& pass,
                       std::vector<FetchLine::Value> fetched);

/// Calls a FetchHandler from worker 0's thread.
class HandlerObserver final : public BatchObserver {
 public:
  /// `frames` are worker 0's; they and the handler outlive the observer.
  HandlerObserver(FetchHandler& handler, const std::vector<const Frame*>& frames);
  Status OnBatch(const TrainedBatch& trained) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct FrameVariables {
    const Frame* frame;
    std::map<std::string, const Variable*> variables;
  };

  FetchHandler* handler_;
  std::chrono::duration<double> period_;
  Clock::time_point last_ = Clock::now();
  std::vector<FrameVariables> frames_;
};

/// kInvalidConfig with the line of an id in `batch` that the vocabulary of an export does not hold. `context` is that
/// of the batch. Looks at each id of exported tables.
Status CheckVocabularies(const std::vector<ModelExport>& exports, const SlotBatch& batch, const RunContext& context);

/// Ends the run at its first batches when they hold an id that an export's vocabulary does not: hashed ids would
/// otherwise be refused when all is trained.
class VocabularyObserver final : public BatchObserver {
 public:
  explicit VocabularyObserver(const std::vector<ModelExport>& exports) : exports_(&exports) {}
  Status OnBatch(const TrainedBatch& trained) override;

 private:
  const std::vector<ModelExport>* exports_;
  int left_ = 8;  ///< batches to look at
};

/// Writes mean times to standard error every 100 batches of worker 0, as Paddle's debug mode does: a line an operator,
/// the share of reading, examples per second.
class ProfileObserver final : public BatchObserver {
 public:
  Status OnBatch(const TrainedBatch& trained) override;

 private:
  int64_t batches_ = 0;
  int64_t examples_ = 0;
  int64_t read_nanoseconds_ = 0;
  int64_t run_nanoseconds_ = 0;
};

}  // namespace millrace
