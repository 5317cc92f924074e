#include "datafeed/data_feed.h"

#include <algorithm>

#include "core/edit_distance.h"
#include "core/harmless_text.h"
#include "data_feed.pb.h"
#include "datafeed/checked_feed.h"
#include "datafeed/column_sink.h"
#include "datafeed/format_feed.h"
#include "datafeed/multi_slot_options.h"

namespace millrace {
namespace {

class MultiSlotFeed final : public DataFeed {
 public:
  MultiSlotFeed(const SlotSchema& schema, const MultiSlotOptions& options) : sink_(schema), parser_(schema, options) {}

  Status Attach(SlotBatch* batch) override {
    sink_.Attach(batch);
    return Status::Ok();
  }
  Status Detach() override {
    sink_.Detach();
    return Status::Ok();
  }
  int rows() const override { return sink_.rows(); }
  Result<LineResult> ParseLine(std::string_view line) override { return parser_.ParseLine(line, sink_); }
  const LineError& error() const override { return parser_.error(); }
  const ValueCounters& counters() const override { return parser_.counters(); }

 private:
  ColumnSink sink_;
  MultiSlotParser parser_;
};

template <FeedClass kClass>
Result<std::unique_ptr<DataFeed>> MakeMultiSlot(const SlotSchema& schema, const DataFeedDesc& desc) {
  return std::unique_ptr<DataFeed>(std::make_unique<MultiSlotFeed>(schema, MultiSlotOptions::FromDesc(desc, kClass)));
}

}  // namespace

DataFeedFactory DataFeedFactory::Builtin() {
  DataFeedFactory factory;
  factory.entries_ = {{"MultiSlotDataFeed", MakeMultiSlot<FeedClass::kQueue>},
                      {"MultiSlotInMemoryDataFeed", MakeMultiSlot<FeedClass::kInMemory>},
                      {"SlotRecordInMemoryDataFeed", MakeMultiSlot<FeedClass::kInMemory>},
                      {"MultiSlotFileInstantDataFeed", nullptr}};
  AddFormatFeeds(&factory);
  return factory;
}

Status DataFeedFactory::Add(std::string name, Maker maker, LineCut cut) {
  for (const Entry& entry : entries_) {
    if (entry.name != name) continue;
    return AlreadyExists("a data feed of the class \"" + name + "\" is registered already" +
                         (entry.plugin.path.empty() ? "" : ", from plugin \"" + entry.plugin.path + "\""));
  }
  entries_.push_back({std::move(name), std::move(maker), cut});
  return Status::Ok();
}

Status DataFeedFactory::Adopt(DataFeedFactory feeds, const std::string& plugin, const std::string& version, Code code) {
  DataFeedFactory all = *this;
  for (Entry& entry : feeds.entries_) {
    if (entry.maker == nullptr) return InvalidConfig("data feed \"" + entry.name + "\" has no maker");
    MR_TRY(all.Add(std::move(entry.name), std::move(entry.maker), entry.cut));
    all.entries_.back().plugin = {plugin, version};
    all.entries_.back().code = code;
  }
  *this = std::move(all);
  return Status::Ok();
}

Result<std::unique_ptr<DataFeed>> DataFeedFactory::Create(std::string_view name, const SlotSchema& schema,
                                                          const DataFeedDesc& desc) const {
  MR_TRY(CheckName(name));
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  if (entry->maker != nullptr) {
    try {
      Result<std::unique_ptr<DataFeed>> made = entry->maker(schema, desc);
      if (!made.ok()) return Harmless(made.status());
      std::unique_ptr<DataFeed> feed = std::move(*made);
      if (feed == nullptr) return InvalidConfig("data_desc.name: \"" + entry->name + "\" made no data feed");
      // A line that is a whole batch has as many values as it likes.
      if (entry->code == Code::kOwn || desc.input_type() != 0) return feed;
      std::string who = "data feed \"" + entry->name + "\" of plugin \"" + entry->plugin.path + "\"";
      return std::unique_ptr<DataFeed>(std::make_unique<CheckedFeed>(std::move(feed), schema, std::move(who)));
    } catch (...) {
      return FeedThrew("data feed \"" + entry->name + "\"");
    }
  }
  return InvalidConfig("data_desc.name: " + entry->name +
                       " reads binary files, not lines of text; it feeds a FileInstantDataset");
}

LineCut DataFeedFactory::CutOf(std::string_view name) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return entry == entries_.end() ? LineCut() : entry->cut;
}

Status DataFeedFactory::CheckName(std::string_view name) const {
  std::string known;
  std::vector<std::string_view> candidates;
  for (const Entry& entry : entries_) {
    if (entry.name == name) return Status::Ok();
    known += (known.empty() ? "" : ", ") + entry.name;
    candidates.push_back(entry.name);
  }
  return InvalidConfig("data_desc.name: no data feed of the class \"" + std::string(name) + "\"" +
                       DidYouMean(name, candidates) + "; there are: " + known);
}

const DataFeedFactory::Origin* DataFeedFactory::PluginOf(std::string_view name) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return entry == entries_.end() || entry->plugin.path.empty() ? nullptr : &entry->plugin;
}

std::vector<std::string> DataFeedFactory::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

}  // namespace millrace
