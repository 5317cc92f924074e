#include "config/feed_names.h"

#include <algorithm>
#include <iterator>

#include "data_feed.pb.h"

namespace millrace {

std::string FeedNameFor(std::string_view dataset, const DataFeedDesc& desc) {
  if (!desc.name().empty()) return desc.name();
  const auto* const own = std::find_if(std::begin(kOwnFeeds), std::end(kOwnFeeds),
                                       [&](const OwnFeed& feed) { return feed.dataset == dataset; });
  return own == std::end(kOwnFeeds) ? "" : std::string(own->name);
}

std::string_view DatasetOfFeed(std::string_view feed_class) {
  const auto* const own = std::find_if(std::begin(kOwnFeeds), std::end(kOwnFeeds),
                                       [&](const OwnFeed& feed) { return feed.name == feed_class; });
  return own == std::end(kOwnFeeds) ? std::string_view() : own->dataset;
}

bool IsFormatFeed(std::string_view feed_class) {
  return std::find(std::begin(kFormatFeeds), std::end(kFormatFeeds), feed_class) != std::end(kFormatFeeds);
}

std::vector<RefusedField> RefusedByRecords(const DataFeedDesc& desc) {
  std::vector<RefusedField> refused;
  const auto refuse = [&](bool is_set, const std::string& field, const std::string& why) {
    if (is_set) refused.push_back({field, "a file of the format \"" + desc.name() + "\" " + why});
  };
  const std::string no_texts = "holds slots alone; names of examples stand in MultiSlot text";
  refuse(desc.parse_ins_id(), "parse_ins_id", no_texts);
  refuse(desc.parse_content(), "parse_content", no_texts);
  refuse(desc.parse_logkey(), "parse_logkey", no_texts);
  refuse(desc.input_type() != 0, "input_type",
         "has an example in each record; lines that are batches are MultiSlot text");
  return refused;
}

std::vector<RefusedField> RefusedByFormat(const DataFeedDesc& desc) {
  if (!IsFormatFeed(desc.name())) return {};
  std::vector<RefusedField> refused = RefusedByRecords(desc);
  const std::string file = "a file of the format \"" + desc.name() + "\" ";
  if (desc.trailing_values() == DataFeedDesc::IGNORE && desc.name() != "csv") {
    std::string why = "has a tensor for each slot; add a slot that is not used for one that is to be left out";
    if (desc.name() == "libsvm") why = "has pairs up to the end of its lines, or a comment behind \"#\"";
    if (desc.name() == "tfrecord" || desc.name() == "ofrecord") {
      why = "has features with names; those that no slot has are left out anyway";
    }
    if (desc.name() == "jpeg") why = "is a picture with its label";
    refused.push_back({"trailing_values", file + why});
  }
  if (desc.zeros() == DataFeedDesc::DROP && desc.name() == "libsvm") {
    refused.push_back({"zeros", file + "has a value for each index; dropped zeros would shift the others"});
  }
  if (desc.name() == "jpeg" && !desc.pipe_command().empty() && desc.pipe_command() != "cat") {
    refused.push_back({"pipe_command", file + "is opened by its path, so that no command can stand before it"});
  }
  if (desc.attrs_size() > 0) {
    refused.push_back({"attrs[0]", file + "has no attributes; they are for the data feed of a plugin"});
  }
  return refused;
}

bool ReadsMultiSlot(std::string_view feed_class) { return feed_class.empty() || !DatasetOfFeed(feed_class).empty(); }

void ResolveZeros(std::string_view dataset, DataFeedDesc* desc) {
  if (desc->zeros() != DataFeedDesc::FEED_DEFAULT) return;
  if (const std::string_view owner = DatasetOfFeed(desc->name()); !owner.empty()) dataset = owner;
  const bool drops = ReadsMultiSlot(desc->name()) && dataset == "InMemoryDataset" && desc->input_type() == 0;
  desc->set_zeros(drops ? DataFeedDesc::DROP : DataFeedDesc::KEEP);
}

void ForgetOwnFeed(DataFeedDesc* desc) {
  ResolveZeros("", desc);
  if (ReadsMultiSlot(desc->name())) desc->clear_name();
}

}  // namespace millrace
