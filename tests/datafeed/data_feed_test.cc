#include "datafeed/data_feed.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "config/feed_names.h"
#include "data_feed.pb.h"
#include "datafeed/builtin_formats.h"
#include "reader/reader_registry.h"

namespace millrace {
namespace {

TEST(DataFeedTest, TheFactoryMakesTheFeedsThatAreListedAsOurs) {
  std::vector<std::string> listed;
  for (const OwnFeed& feed : kOwnFeeds) listed.emplace_back(feed.name);
  const DataFeedFactory feeds = DataFeedFactory::Builtin();
  for (const auto& [format, traits] : feeds.formats()) listed.push_back(format);
  EXPECT_THAT(feeds.names(), testing::IsSupersetOf(listed));
}

TEST(DataFeedTest, EveryFormatOfProgramsFeedsDatasetsUnderItsName) {
  ReaderRegistry readers;
  ASSERT_TRUE(AddBuiltinFormats(&readers).ok());
  std::vector<std::string> formats = {"multi_slot"};                       // whose feeds are named after datasets
  const std::set<std::string> of_features = {"json", "parquet", "arrow"};  // whose columns only features take
  for (const auto& [format, traits] : DataFeedFactory::Builtin().formats()) {
    if (of_features.count(format) == 0) formats.push_back(format);
  }
  EXPECT_THAT(readers.names(), testing::UnorderedElementsAreArray(formats));
}

TEST(DataFeedTest, APluginsFeedIsNotForgotten) {
  DataFeedDesc desc;
  desc.set_name("MultiSlotInMemoryDataFeed");
  ForgetOwnFeed(&desc);
  EXPECT_FALSE(desc.has_name());
  desc.set_name("PairFeed");
  ForgetOwnFeed(&desc);
  EXPECT_EQ(desc.name(), "PairFeed");
}

}  // namespace
}  // namespace millrace
