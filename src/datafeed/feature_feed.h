#pragma once

#include <memory>

#include "datafeed/format_feed.h"
#include "reader/feature_record.h"

namespace millrace {

/// Rows of TFRecord and OFRecord files. A slot reads the feature with its name: ids from int64 lists (in OFRecord also
/// int32), floats from float32 lists. Other features are ignored. A record with a wrong checksum is a bad line.
/// OFRecord has no checksums, so a record that is not a message ends reading.
class FeatureFeed final : public FormatFeed {
 public:
  FeatureFeed(const SlotSchema& schema, const MultiSlotOptions& options, FeatureRecord::Format format)
      : FormatFeed(schema, options), format_(format), record_(FeatureRecord::Create(format)) {}

 private:
  LineResult Read(std::string_view line) override;
  bool ReadSlot(const SlotSpec& slot);

  FeatureRecord::Format format_;
  std::unique_ptr<FeatureRecord> record_;
  std::vector<int64_t> wide_;
};

}  // namespace millrace
