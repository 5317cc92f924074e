#include "datafeed/instant_feed.h"

#include "data_feed.pb.h"
#include "datafeed/drop_zeros.h"

namespace millrace {

Result<std::unique_ptr<const InstantFeed>> MultiSlotFileInstantDataFeed::Make(const SlotSchema& schema,
                                                                              const DataFeedDesc& desc) {
  return std::unique_ptr<const InstantFeed>(std::make_unique<MultiSlotFileInstantDataFeed>(
      schema, desc.empty_slot() == DataFeedDesc::ALLOW, desc.zeros() == DataFeedDesc::DROP));
}

int64_t MultiSlotFileInstantDataFeed::CopyRows(std::span<const uint8_t> file, const InstantFormat::Rows& rows,
                                               SlotBatch* batch) const {
  format_.CopyRows(file, rows, batch);
  return drop_zeros_ ? DropZeros(*batch) : 0;
}

}  // namespace millrace
