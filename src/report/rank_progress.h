#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "batch/consumed_ranges.h"
#include "core/status.h"
#include "core/wire.h"
#include "dataset/dataset.h"
#include "device_worker/device_worker.h"
#include "metrics/metric_set.h"

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

// What it is made of, for other messages.

void PutTotals(const MetricTotals& totals, WireWriter* out);
/// nullopt for totals of other metrics, or what PutTotals did not write.
std::optional<MetricTotals> GetTotals(WireReader* in, const MetricSet& metrics);
void PutPassStats(const PassStats& data, WireWriter* out);
void GetPassStats(WireReader* in, PassStats* data);

}  // namespace millrace
