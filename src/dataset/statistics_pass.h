#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "dataset/dataset.h"
#include "dataset/line_draw.h"
#include "ranks/rank_group.h"

namespace millrace {

class FeatureStates;

/// Reads the training files once to compute the statistics that features need.
struct StatisticsPass {
  const DataFeedDesc* desc = nullptr;
  const std::vector<std::string>* files = nullptr;
  const DataFeedFactory* feeds = nullptr;
  LineShare held = {};
  int threads = 1;  ///< reading and parsing threads if desc.thread_num is not set
  /// The first `readers` ranks read the files together: rank i reads files i, i + readers, ....
  RankGroup* ranks = nullptr;
  int readers = 1;
  /// Called by the calling thread with the row count, every few thousand rows. Empty: not called.
  std::function<void(int64_t rows)> on_rows = nullptr;
  PassStats* read = nullptr;  ///< receives the statistics of this process; null: not needed
};

/// Reads the files with `threads` threads and writes the missing feature statistics into `states`. The result does not
/// depend on threads or ranks. Bad lines are skipped within the job's limits, which apply per rank. Blocks. Fails with
/// kBadData like a training pass, and for a feature without any value; kCancelled after a stop request.
///
/// Collective, inside the GroupCancellation that the ranks have begun: `asked` is this rank's stop request, `stop` that
/// of any rank. Each rank sends its sums to the leader, which returns the total to all.
Status TakeStatistics(const StatisticsPass& pass, const std::stop_token& asked, const std::stop_token& stop,
                      FeatureStates* states);

}  // namespace millrace
