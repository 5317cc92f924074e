#include "datafeed/data_feed.h"

#include <glog/logging.h>

#include "core/harmless_text.h"
#include "data_feed.pb.h"
#include "datafeed/builtin_formats.h"
#include "datafeed/checked_feed.h"
#include "datafeed/multi_slot_feed.h"
#include "datafeed/row_records.h"
#include "features/feature_plan.h"

namespace millrace {
namespace {

/// The name of a class in messages.
std::string Who(std::string_view name, const FeedKind& kind) {
  const std::string& plugin = kind.plugin.path;
  return "data feed \"" + std::string(name) + "\"" + (plugin.empty() ? "" : " of plugin \"" + plugin + "\"");
}

}  // namespace

DataFeedFactory DataFeedFactory::Builtin() {
  DataFeedFactory factory;
  AddMultiSlotFeeds(&factory);
  CHECK(AddBuiltinFormats(&factory).ok());
  return factory;
}

Status DataFeedFactory::Add(std::string name, std::string doc, FeedKind kind) {
  const FeedKind::Origin* const plugin = PluginOf(name);
  Status added = Registry::Add(std::move(name), std::move(doc), std::move(kind));
  return plugin == nullptr ? added : AlreadyExists(added.message() + ", from plugin \"" + plugin->path + "\"");
}

Status DataFeedFactory::AddRowFiles(std::string name, std::string doc, RowFileMaker maker) {
  constexpr FormatTraits kRows = {.no_trailing_values = "gives the values of the used slots alone",
                                  .takes_attrs = true};
  return Add(std::move(name), std::move(doc), FeedOfRows(std::move(maker), kRows));
}

Status DataFeedFactory::Adopt(const DataFeedFactory& feeds, const std::string& plugin, const std::string& version,
                              Code code) {
  DataFeedFactory all = *this;
  for (const Entry& entry : feeds.entries()) {
    if (entry.value.maker == nullptr && entry.value.instant == nullptr)
      return InvalidConfig("data feed \"" + entry.name + "\" has no maker");
    FeedKind kind = entry.value;
    kind.plugin = {plugin, version};
    kind.code = kind.cut_of != nullptr ? Code::kOwn : code;
    MR_TRY(all.Add(entry.name, entry.doc, std::move(kind)));
  }
  *this = std::move(all);
  return Status::Ok();
}

Result<std::unique_ptr<DataFeed>> DataFeedFactory::Create(std::string_view class_name, const SlotSchema& schema,
                                                          const DataFeedDesc& desc) const {
  MR_ASSIGN(const FeedKind* const kind, Get(class_name).Context("data_desc.name"));
  const std::string name(class_name);
  if (kind->instant != nullptr) {
    return InvalidConfig("data_desc.name: " + name +
                         " reads binary files, not lines of text; it feeds a FileInstantDataset");
  }
  if (kind->format) {
    const std::vector<RefusedField> refused = RefusedByFormat(desc, *kind->format);
    if (!refused.empty()) return InvalidConfig("data_desc." + refused.front().field + ": " + refused.front().why);
  }
  try {
    Result<std::unique_ptr<DataFeed>> made = kind->maker(schema, desc);
    if (!made.ok()) return Harmless(made.status());
    std::unique_ptr<DataFeed> feed = std::move(*made);
    if (feed == nullptr) return InvalidConfig("data_desc.name: \"" + name + "\" made no data feed");
    // A line that is a whole batch can have any number of values.
    if (kind->code == Code::kOwn || desc.input_type() != 0) return feed;
    return std::unique_ptr<DataFeed>(std::make_unique<CheckedFeed>(std::move(feed), schema, Who(name, *kind)));
  } catch (...) {
    return FeedThrew("data feed \"" + name + "\"");
  }
}

Result<std::unique_ptr<const InstantFeed>> DataFeedFactory::CreateInstant(std::string_view name,
                                                                          const SlotSchema& schema,
                                                                          const DataFeedDesc& desc) const {
  MR_ASSIGN(const FeedKind* const kind, Get(name).Context("data_desc.name"));
  if (kind->instant == nullptr) {
    return InvalidConfig("data_desc.name: a FileInstantDataset reads with MultiSlotFileInstantDataFeed, not with \"" +
                         std::string(name) + "\"");
  }
  try {
    Result<std::unique_ptr<const InstantFeed>> made = kind->instant(schema, desc);
    if (!made.ok()) return Harmless(made.status());
    if (*made == nullptr) return InvalidConfig("data_desc.name: \"" + std::string(name) + "\" made no data feed");
    return made;
  } catch (...) {
    return FeedThrew(Who(name, *kind));
  }
}

Result<LineCut> DataFeedFactory::CutOf(std::string_view name, const SlotSchema& schema,
                                       const DataFeedDesc& desc) const {
  const FeedKind* const kind = Find(name);
  if (kind == nullptr) return LineCut();
  if (kind->cut_of == nullptr) {
    LineCut cut = kind->cut;
    if (kind->header_of != nullptr) cut.header = kind->header_of(desc);
    if (kind->command_of != nullptr) {
      std::vector<std::string> slots;
      for (const SlotSpec& slot : schema.used()) slots.push_back(slot.name);
      MR_ASSIGN(const std::shared_ptr<const FeaturePlan> plan, FeaturePlan::Create(desc, slots));
      cut.command = kind->command_of(desc, plan->columns());
    }
    return cut;
  }
  try {
    Result<LineCut> cut = kind->cut_of(schema, desc, Who(name, *kind));
    if (!cut.ok()) return Harmless(cut.status());
    if (kind->format && kind->format->opens_files) cut->opened_by = name;
    return cut;
  } catch (...) {
    return FeedThrew(Who(name, *kind));
  }
}

void DataFeedFactory::BeginJob() const {
  for (const Entry& entry : entries()) {
    if (entry.value.begin_job != nullptr) entry.value.begin_job();
  }
}

std::map<std::string, FormatTraits> DataFeedFactory::formats() const {
  std::map<std::string, FormatTraits> formats;
  for (const Entry& entry : entries()) {
    if (entry.value.format) formats[entry.name] = *entry.value.format;
  }
  return formats;
}

bool DataFeedFactory::ReadsText(std::string_view name) const {
  const FeedKind* const kind = Find(name);
  return kind == nullptr || (kind->cut.is_text() && kind->cut_of == nullptr);
}

Status DataFeedFactory::CheckName(std::string_view name) const { return Get(name).Context("data_desc.name").status(); }

const FeedKind::Origin* DataFeedFactory::PluginOf(std::string_view name) const {
  const FeedKind* const kind = Find(name);
  return kind == nullptr || kind->plugin.path.empty() ? nullptr : &kind->plugin;
}

}  // namespace millrace
