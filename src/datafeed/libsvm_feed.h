#pragma once

#include <string_view>

#include "datafeed/text_feed.h"

namespace millrace {

/// Rows of lines `LABEL INDEX:VALUE ... # comment`. The slots, used or not, are the label (one value) and either one
/// dense float slot, which starts at index 1 and is 0 for missing indices, or indices (sparse ids) and values (sparse
/// floats). Indices ascend from 1. One thread.
class LibsvmFeed final : public TextFeed {
 public:
  LibsvmFeed(const SlotSchema& schema, const MultiSlotOptions& options) : TextFeed(schema, options) {}
  /// Fails with kInvalidConfig for other slots.
  static Status CheckSlots(const SlotSchema& schema);

 private:
  LineResult Read(std::string_view line) override;
  bool ReadLabel(const SlotSpec& slot, std::string_view token);
  /// Reads INDEX:VALUE: sets `last` to the index, which must be at most `most`, and appends the value to floats().
  bool ReadPair(const SlotSpec& values, std::string_view token, int64_t most, int64_t* last);
};

}  // namespace millrace
