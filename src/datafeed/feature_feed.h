#pragma once

#include <memory>

#include "datafeed/format_feed.h"
#include "reader/feature_record.h"

namespace millrace {

/// Rows of TFRecord and OFRecord files: a slot is the feature of its name, ids from lists of int64 (of an OFRecord also
/// of int32), floats from lists of float32. Other features count for nothing. A record whose checksum is wrong is a bad
/// line; an OFRecord that is no message, which has none, ends reading.
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
