#pragma once

#include <string_view>

#include "datafeed/text_feed.h"

namespace millrace {

/// Rows of lines `LABEL INDEX:VALUE ... # comment`. The slots, used or not, are the label (one value) and either one
/// dense slot of floats, which index 1 is the first of and where what is not named is 0, or the indices (sparse ids)
/// and their values (sparse floats). Indices rise from 1. One thread.
class LibsvmFeed final : public TextFeed {
 public:
  LibsvmFeed(const SlotSchema& schema, const MultiSlotOptions& options) : TextFeed(schema, options) {}
  /// kInvalidConfig for other slots.
  static Status CheckSlots(const SlotSchema& schema);

 private:
  LineResult Read(std::string_view line) override;
  bool ReadLabel(const SlotSpec& slot, std::string_view token);
  /// INDEX:VALUE, of which the index, `most` at most, becomes `last`, and the value the last one of floats().
  bool ReadPair(const SlotSpec& values, std::string_view token, int64_t most, int64_t* last);
};

}  // namespace millrace
