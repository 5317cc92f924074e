#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "dataset/dataset.h"
#include "dataset/held_rows.h"
#include "ranks/rank_group.h"

namespace millrace {

class FeatureStates;

/// One reading of the training files for what features must know of them.
struct StatisticsPass {
  const DataFeedDesc* desc = nullptr;
  const std::vector<std::string>* files = nullptr;
  const DataFeedFactory* feeds = nullptr;
  HeldRows held = {};
  int threads = 1;  ///< that read and parse, where desc.thread_num is not set
  /// Ranks of which the first `readers` read the files together, file i rank i modulo them.
  RankGroup* ranks = nullptr;
  int readers = 1;
  /// Told every few thousand rows how many there were, by the calling thread. Empty: nobody is.
  std::function<void(int64_t rows)> on_rows = nullptr;
  PassStats* read = nullptr;  ///< takes what this process met; null: nobody asks
};

/// Reads the files by `threads` threads and writes what the features of the description lack into `states`, the same
/// for any number of threads and ranks. Bad lines are left out within the job's budget, which each rank has. Blocks.
/// kBadData as a pass of training, and for a feature that has no value anywhere; kCancelled after a stop request.
///
/// A collective of the ranks, within what their CommonEnd has begun: `asked` is this rank's own request to stop, `stop`
/// that of any rank. Each sends what it gathered to the leader, which gives the sums to all.
Status TakeStatistics(const StatisticsPass& pass, const std::stop_token& asked, const std::stop_token& stop,
                      FeatureStates* states);

}  // namespace millrace
