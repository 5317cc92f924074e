#include "datafeed/scoring_feeds.h"

#include <memory>
#include <string>
#include <utility>

#include "data_feed.pb.h"
#include "datafeed/column_feed.h"

namespace millrace {

Result<DataFeedFactory> ScoringFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc) {
  const FeedKind* const kind = feeds.Find(desc.name());
  if (desc.feature_size() == 0 || kind == nullptr || kind->columns == nullptr) return feeds;
  FeedKind scoring = *kind;
  scoring.maker = [columns = kind->columns, plans = std::make_shared<const FeaturePlans>()](
                      const SlotSchema& schema, const DataFeedDesc& lines) -> Result<std::unique_ptr<DataFeed>> {
    MR_ASSIGN(ColumnSetup setup, plans->Setup(schema, lines));
    setup.scores = true;
    return columns(schema, lines, setup);
  };
  DataFeedFactory factory;
  MR_TRY(factory.Add(desc.name(), "reads rows to score", std::move(scoring)));
  return factory;
}

}  // namespace millrace
