#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "batch/consumed_ranges.h"
#include "core/status.h"
#include "core/wire.h"
#include "dataset/dataset.h"
#include "device_worker/device_worker.h"
#include "job/run_hooks.h"
#include "metrics/metric_set.h"
#include "ranks/rank_group.h"

namespace millrace {

/// What a rank has done of a pass, as it tells the rank that leads.
struct RankProgress {
  ConsumedRanges trained;
  std::map<std::string, int64_t> bad_lines;  ///< by kind, among the trained positions
  MetricTotals totals;
  int64_t batches = 0;
  int64_t examples = 0;
  int64_t read_nanoseconds = 0;
  int64_t run_nanoseconds = 0;
  int64_t exchange_nanoseconds = 0;
  PassStats data;  ///< once the pass has ended

  std::string ToBytes() const;
  /// kInternal when `bytes` are not those of a rank of the same job.
  static Result<RankProgress> FromBytes(std::string_view bytes, const MetricSet& metrics);
  /// Adds what a worker of this rank did.
  void AddWorker(const WorkerReport& worker);
  /// Adds what another rank counted.
  void AddCounts(const RankProgress& other);
  /// The same, with what it trained and measured.
  void Add(const RankProgress& other);
};

/// What all ranks have done of a pass, brought together where one leads. What it is given outlives it. Belongs to the
/// trainer's thread.
class GatheredProgress {
 public:
  GatheredProgress(RankGroup& ranks, const MetricSet& metrics) : ranks_(&ranks), metrics_(&metrics) {}

  /// Brings what all ranks have done to the one that leads; there it is added to `state` and kept in others(). Tells
  /// all whether one is not sound or was asked to stop. `mine` is asked for by ranks that do not lead. A collective.
  Status Gather(const std::function<RankProgress()>& mine, RunState* state, bool* is_sound, bool* is_asked_to_stop);
  /// Of others, where this rank leads, at the last Gather.
  const RankProgress& others() const { return others_; }
  /// Sums over all ranks: rows everywhere, the rest where one leads. A collective.
  Status SumLoads(PassStats* load, int64_t* rows) const;
  /// Of an earlier run, those among the positions of the pass that were trained; Gather adds them.
  void SetEarlierBadLines(std::map<std::string, int64_t> counts) { earlier_bad_lines_ = std::move(counts); }

 private:
  RankGroup* ranks_;
  const MetricSet* metrics_;
  RankProgress others_;
  std::map<std::string, int64_t> earlier_bad_lines_;
};

// What it is made of, for other messages.

void PutTotals(const MetricTotals& totals, WireWriter* out);
/// nullopt for totals of other metrics, or what PutTotals did not write.
std::optional<MetricTotals> GetTotals(WireReader* in, const MetricSet& metrics);
void PutPassStats(const PassStats& data, WireWriter* out);
void GetPassStats(WireReader* in, PassStats* data);

}  // namespace millrace
