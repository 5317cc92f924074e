#include "datafeed/multi_slot_feed.h"

#include <glog/logging.h>

#include "data_feed.pb.h"
#include "datafeed/instant_feed.h"
#include "datafeed/row_sink.h"

namespace millrace {

Result<std::unique_ptr<DataFeed>> MultiSlotDataFeed::Make(const SlotSchema& schema, const DataFeedDesc& desc) {
  return std::unique_ptr<DataFeed>(std::make_unique<MultiSlotDataFeed>(schema, MultiSlotOptions::FromDesc(desc)));
}

Status MultiSlotDataFeed::Attach(SlotBatch* batch) {
  sink_.Attach(batch);
  return Status::Ok();
}

Status MultiSlotDataFeed::Detach() {
  sink_.Detach();
  return Status::Ok();
}

MultiSlotOptions MultiSlotInMemoryDataFeed::OptionsOf(const DataFeedDesc& desc) {
  MultiSlotOptions options = MultiSlotOptions::FromDesc(desc);
  const bool drops = options.drop_zeros || desc.zeros() == DataFeedDesc::FEED_DEFAULT;
  // Values of a line that is a batch are identified by position.
  options.drop_zeros = drops && desc.input_type() == 0;
  return options;
}

Result<std::unique_ptr<DataFeed>> MultiSlotInMemoryDataFeed::Make(const SlotSchema& schema, const DataFeedDesc& desc) {
  return std::unique_ptr<DataFeed>(std::make_unique<MultiSlotInMemoryDataFeed>(schema, OptionsOf(desc)));
}

void AddMultiSlotFeeds(DataFeedFactory* factory) {
  const auto add = [factory](const char* name, const char* doc, FeedKind kind) {
    CHECK(factory->Add(name, doc, std::move(kind)).ok()) << name;
  };
  add("MultiSlotDataFeed", "MultiSlot text", {MultiSlotDataFeed::Make});
  add("MultiSlotInMemoryDataFeed", "MultiSlot text in memory", {MultiSlotInMemoryDataFeed::Make});
  add("SlotRecordInMemoryDataFeed", "MultiSlot text in memory", {MultiSlotInMemoryDataFeed::Make});
  add("MultiSlotFileInstantDataFeed", "binary files that are mapped", {.instant = MultiSlotFileInstantDataFeed::Make});
}

}  // namespace millrace
