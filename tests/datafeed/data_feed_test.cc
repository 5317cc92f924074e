#include "datafeed/data_feed.h"

#include <gmock/gmock.h>

#include "config/feed_names.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

TEST(DataFeedTest, TheFactoryMakesTheFeedsThatAreListedAsOurs) {
  std::vector<std::string> listed;
  for (const OwnFeed& feed : kOwnFeeds) listed.emplace_back(feed.name);
  EXPECT_THAT(DataFeedFactory::Builtin().names(), testing::UnorderedElementsAreArray(listed));
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
