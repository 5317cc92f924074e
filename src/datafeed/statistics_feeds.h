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

/// Collects the statistics of a pass. Any thread can add a collector.
class GatheredStatistics {
 public:
  /// Returns a new collector. Fails like FeatureStatistics::Create.
  Result<FeatureStatistics*> AddOne(const DataFeedDesc& desc);
  /// Adds the Message() of another process with the same description. Fails with kInternal if the message is truncated.
  Status AddMessage(const DataFeedDesc& desc, std::string_view message);

  // For use when no feed reads any more.

  /// The sum of all collectors, for AddMessage.
  std::string Message();
  /// Writes the sum to `states`. Fails with kBadData for a feature without any value.
  Status Finish(FeatureStates* states);

 private:
  /// Sums all collectors; null if there are none.
  FeatureStatistics* AddUp();

  std::mutex mutex_;
  std::vector<std::unique_ptr<FeatureStatistics>> all_;
};

/// The description of a pass that gathers the missing statistics of `desc`'s features, with the same files and lines:
/// its rows have no values.
DataFeedDesc StatisticsDesc(const DataFeedDesc& desc);

/// A factory whose only class, that of `desc`, gathers statistics instead of making values. `gathered` must outlive its
/// feeds. Fails with kInvalidConfig for a class that is unknown or has no named columns, and like
/// FeatureStatistics::Create.
Result<DataFeedFactory> StatisticsFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc,
                                        GatheredStatistics* gathered);

}  // namespace millrace
