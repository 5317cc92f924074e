#pragma once

namespace millrace {

class DataFeedDesc;

/// Options for parsing MultiSlot text, apart from the slots. Plain values.
struct MultiSlotOptions {
  /// Reads the fields of `desc`. `zeros: FEED_DEFAULT` keeps zeros here; a feed class can override that.
  static MultiSlotOptions FromDesc(const DataFeedDesc& desc);

  bool parse_ins_id = false;
  bool parse_content = false;
  /// "1 KEY" follows these: 32 hex digits (LogKey), which become the example's name.
  bool parse_logkey = false;
  /// A count of 0 is an empty list, not an error.
  bool allow_empty_slots = false;
  /// Drops ids 0 and floats below 1e-6 of sparse slots; a slot emptied by this gets one 0.
  bool drop_zeros = false;
  /// Tokens after the last slot are counted instead of rejected.
  bool ignore_trailing = false;
  /// NaN and infinite values are rejected.
  bool reject_non_finite = false;
};

}  // namespace millrace
