#include "framework/feed_names.h"

#include <algorithm>
#include <iterator>

#include "data_feed.pb.h"

namespace millrace {

bool ReadsMultiSlot(std::string_view feed_class) {
  const auto is_named = [&](const OwnFeed& feed) { return feed.name == feed_class; };
  return feed_class.empty() || std::any_of(std::begin(kOwnFeeds), std::end(kOwnFeeds), is_named);
}

void ForgetOwnFeed(DataFeedDesc* desc) {
  if (ReadsMultiSlot(desc->name())) desc->clear_name();
}

}  // namespace millrace
