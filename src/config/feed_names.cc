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

std::vector<RefusedField> RefusedByFormat(const DataFeedDesc& desc, const FormatTraits& format) {
  std::vector<RefusedField> refused;
  const auto refuse = [&](bool is_set, const std::string& field, std::string_view why) {
    if (is_set) refused.push_back({field, "a file of the format \"" + desc.name() + "\" " + std::string(why)});
  };
  constexpr std::string_view kNoTexts = "holds slots alone; names of examples stand in MultiSlot text";
  refuse(desc.parse_ins_id(), "parse_ins_id", kNoTexts);
  refuse(desc.parse_content(), "parse_content", kNoTexts);
  refuse(desc.parse_logkey(), "parse_logkey", kNoTexts);
  refuse(desc.input_type() != 0, "input_type",
         "has an example in each record; lines that are batches are MultiSlot text");
  refuse(desc.trailing_values() == DataFeedDesc::IGNORE && !format.no_trailing_values.empty(), "trailing_values",
         format.no_trailing_values);
  refuse(desc.zeros() == DataFeedDesc::DROP && !format.no_dropped_zeros.empty(), "zeros", format.no_dropped_zeros);
  refuse(format.opens_files && !desc.pipe_command().empty() && desc.pipe_command() != "cat", "pipe_command",
         "is opened by its path, so that no command can stand before it");
  refuse(!format.takes_attrs && desc.attrs_size() > 0, "attrs[0]",
         "has no attributes; they are for the data feed of a plugin");
  refuse(!format.has_columns && desc.feature_size() > 0, "feature[0]",
         "has no columns with names; features are for \"csv\", \"json\", \"libsvm\", \"parquet\" and \"arrow\"");
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
