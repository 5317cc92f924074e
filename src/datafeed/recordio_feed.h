#pragma once

#include "datafeed/format_feed.h"
#include "reader/recordio.h"

namespace millrace {

/// Rows of RecordIO files: a record is an example, and its tensors are the slots, used or not, in order. Ids are int64
/// with all 64 bits kept; floats are float32.
class RecordIOFeed final : public FormatFeed {
 public:
  RecordIOFeed(const SlotSchema& schema, const MultiSlotOptions& options)
      : FormatFeed(schema, options), tensors_(schema.all().size()) {}

 private:
  LineResult Read(std::string_view line) override;
  bool ReadSlot(const SlotSpec& slot, const LoDTensor& tensor);

  std::vector<LoDTensor> tensors_;
};

}  // namespace millrace
