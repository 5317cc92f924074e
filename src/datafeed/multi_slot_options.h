#pragma once

namespace millrace {

class DataFeedDesc;

/// How a line of MultiSlot text is read, apart from its slots. Plain values, copied.
struct MultiSlotOptions {
  /// Reads the fields of `desc`; what `zeros: FEED_DEFAULT` means is for the class of feed to say, and keeps zeros
  /// here.
  static MultiSlotOptions FromDesc(const DataFeedDesc& desc);

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
