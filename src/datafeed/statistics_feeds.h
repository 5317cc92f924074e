#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "features/feature_statistics.h"

namespace millrace {

/// What the feeds of a pass for statistics gather. Any thread adds a gatherer of its own.
class GatheredStatistics {
 public:
  Result<FeatureStatistics*> AddOne(const DataFeedDesc& desc);
  /// All of them added up, when no feed reads any more: kBadData for a feature that has no value anywhere.
  Status Finish(FeatureStates* states);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<FeatureStatistics>> all_;
};

/// The description of a pass that gathers what the features of `desc` lack, of the same files and lines: rows without
/// values.
DataFeedDesc StatisticsDesc(const DataFeedDesc& desc);

/// A factory whose only class, that of `desc`, gathers in place of making values. `gathered` outlives its feeds.
Result<DataFeedFactory> StatisticsFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc,
                                        GatheredStatistics* gathered);

}  // namespace millrace
