#include "datafeed/statistics_feeds.h"

#include <utility>

#include "data_feed.pb.h"
#include "datafeed/column_feed.h"

namespace millrace {

Result<FeatureStatistics*> GatheredStatistics::AddOne(const DataFeedDesc& desc) {
  MR_ASSIGN(std::unique_ptr<FeatureStatistics> one, FeatureStatistics::Create(desc));
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(one));
  return all_.back().get();
}

Status GatheredStatistics::AddMessage(const DataFeedDesc& desc, std::string_view message) {
  if (message.empty()) return Status::Ok();
  FeatureStatistics* sum = AddUp();
  if (sum == nullptr) {
    MR_ASSIGN(sum, AddOne(desc));
  }
  WireReader in(message);
  return sum->AddFrom(&in);
}

std::string GatheredStatistics::Message() {
  std::string message;
  WireWriter out(&message);
  if (const FeatureStatistics* const sum = AddUp(); sum != nullptr) sum->Put(&out);
  return message;
}

Status GatheredStatistics::Finish(FeatureStates* states) {
  const FeatureStatistics* const sum = AddUp();
  return sum == nullptr ? BadData("nothing was read") : sum->Finish(states);
}

FeatureStatistics* GatheredStatistics::AddUp() {
  const std::lock_guard lock(mutex_);
  while (all_.size() > 1) {
    all_.front()->Add(*all_.back());
    all_.pop_back();
  }
  return all_.empty() ? nullptr : all_.front().get();
}

DataFeedDesc StatisticsDesc(const DataFeedDesc& desc) {
  constexpr int kRowsAtOnce = 4096;
  DataFeedDesc pass = desc;
  pass.set_batch_size(kRowsAtOnce);
  pass.set_drop_last(false);
  pass.clear_empty_slot();
  // Training quarantines bad lines; do not do it twice.
  if (pass.bad_lines().action() == BadLinePolicy::QUARANTINE) pass.mutable_bad_lines()->set_action(BadLinePolicy::SKIP);
  pass.mutable_bad_lines()->clear_quarantine_path();
  pass.clear_multi_slot_desc();
  Slot& slot = *pass.mutable_multi_slot_desc()->add_slots();
  slot.set_name("row");
  slot.set_type("uint64");
  slot.set_is_used(true);
  return pass;
}

Result<DataFeedFactory> StatisticsFeeds(const DataFeedFactory& feeds, const DataFeedDesc& desc,
                                        GatheredStatistics* gathered) {
  MR_ASSIGN(const FeedKind* const kind, feeds.Get(desc.name()).Context("data_desc.name"));
  if (kind->columns == nullptr) {
    return InvalidConfig("data_desc.feature: files of \"" + desc.name() + "\" have no columns with names");
  }
  FeedKind gathering = *kind;
  gathering.maker = [columns = kind->columns, gathered](const SlotSchema& schema,
                                                        const DataFeedDesc& pass) -> Result<std::unique_ptr<DataFeed>> {
    ColumnSetup setup;
    setup.options = MultiSlotOptions::FromDesc(pass);
    setup.options.allow_empty_slots = true;
    MR_ASSIGN(setup.statistics, gathered->AddOne(pass));
    return columns(schema, pass, setup);
  };
  if (kind->command_of != nullptr) {
    MR_ASSIGN(const std::unique_ptr<FeatureStatistics> lacking, FeatureStatistics::Create(desc));
    gathering.cut.command = kind->command_of(desc, lacking->plan().columns());
    gathering.command_of = nullptr;
  }
  DataFeedFactory factory;
  MR_TRY(factory.Add(desc.name(), "gathers statistics", std::move(gathering)));
  return factory;
}

}  // namespace millrace
