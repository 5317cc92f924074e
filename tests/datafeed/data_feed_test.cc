#include "datafeed/data_feed.h"

#include <gmock/gmock.h>

#include <iterator>

#include "config/feed_names.h"
#include "data_feed.pb.h"
#include "reader/builtin_formats.h"
#include "reader/reader_registry.h"

namespace millrace {
namespace {

TEST(DataFeedTest, TheFactoryMakesTheFeedsThatAreListedAsOurs) {
  std::vector<std::string> listed;
  for (const OwnFeed& feed : kOwnFeeds) listed.emplace_back(feed.name);
  listed.insert(listed.end(), std::begin(kFormatFeeds), std::end(kFormatFeeds));
  EXPECT_THAT(DataFeedFactory::Builtin().names(), testing::UnorderedElementsAreArray(listed));
}

TEST(DataFeedTest, AFormatHasTheNameThatReadersKnowItBy) {
  ReaderRegistry readers;
  ASSERT_TRUE(RegisterBuiltinFormats(readers).ok());
  std::vector<std::string> tags;
  for (const std::string& tag : readers.names()) tags.push_back(tag);
  EXPECT_THAT(tags, testing::IsSupersetOf(std::vector<std::string>(std::begin(kFormatFeeds), std::end(kFormatFeeds))));
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
