#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "datafeed/data_feed.h"
#include "features/feature_statistics.h"

namespace millrace {

/// What the feeds of a pass for statistics gather. Any thread adds a gatherer of its own.
class GatheredStatistics {
 public:
  Result<FeatureStatistics*> AddOne(const DataFeedDesc& desc);
  /// Adds what Message() of another process has of the same description.
  Status AddMessage(const DataFeedDesc& desc, std::string_view message);

  // When no feed reads any more.

  /// All of them added up, for AddMessage.
  std::string Message();
  /// Writes all of them added up: kBadData for a feature that has no value anywhere.
  Status Finish(FeatureStates* states);

 private:
  /// The sum of all; null when there is none.
  FeatureStatistics* AddUp();

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
