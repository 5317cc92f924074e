#include "config/feed_names.h"

#include <algorithm>
#include <iterator>

#include "data_feed.pb.h"

namespace millrace {

bool ReadsMultiSlot(std::string_view feed_class) {
  const auto is_named = [&](const OwnFeed& feed) { return feed.name == feed_class; };
  return feed_class.empty() || std::any_of(std::begin(kOwnFeeds), std::end(kOwnFeeds), is_named);
}

void ResolveZeros(std::string_view dataset, DataFeedDesc* desc) {
  if (desc->zeros() != DataFeedDesc::FEED_DEFAULT) return;
  for (const OwnFeed& feed : kOwnFeeds) {
    if (feed.name == desc->name()) dataset = feed.dataset;
  }
  const bool drops = ReadsMultiSlot(desc->name()) && dataset == "InMemoryDataset" && desc->input_type() == 0;
  desc->set_zeros(drops ? DataFeedDesc::DROP : DataFeedDesc::KEEP);
}

void ForgetOwnFeed(DataFeedDesc* desc) {
  ResolveZeros("", desc);
  if (ReadsMultiSlot(desc->name())) desc->clear_name();
}

}  // namespace millrace
