#pragma once

#include <cstdint>

namespace millrace {

class DataFeedDesc;

/// The class of feed whose habits `zeros: FEED_DEFAULT` takes over.
enum class FeedClass : uint8_t {
  kQueue,     ///< MultiSlotDataFeed: keeps zeros
  kInMemory,  ///< MultiSlotInMemoryDataFeed: drops zeros of sparse slots
};

/// How a line of MultiSlot text is read, apart from its slots. Plain values, copied.
struct MultiSlotOptions {
  /// Reads the fields of `desc`; desc.name, when set, decides the class, otherwise `feed`.
  static MultiSlotOptions FromDesc(const DataFeedDesc& desc, FeedClass feed);

  bool parse_ins_id = false;
  bool parse_content = false;
  /// "1 KEY" after these: 32 hex digits (LogKey), which become the example's name.
  bool parse_logkey = false;
  /// A count of 0 is an empty list, not an error.
  bool allow_empty_slots = false;
  /// Ids 0 and floats below 1e-6 of sparse slots are left out; a slot that they leave empty feeds one 0.
  bool drop_zeros = false;
  /// Tokens after the last slot are counted, not refused.
  bool ignore_trailing = false;
  /// NaN and infinite values are errors.
  bool reject_non_finite = false;
};

}  // namespace millrace
