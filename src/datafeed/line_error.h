#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Why a line was rejected. The names (LineErrorKindName) are keys of PassStats::counters.
enum class LineErrorKind : uint8_t {
  kBadPrefix,      ///< ins_id, content or logkey is not "1 TOKEN"
  kBadCount,       ///< a count is not a number, negative, or above 2^31 - 1
  kEmptySlot,      ///< a count of 0 that the configuration does not allow
  kBadValue,       ///< a value is not a number of the slot's type
  kOverflow,       ///< an id above 2^64 - 1
  kNegativeId,     ///< an id with a minus sign
  kMissingValues,  ///< the line ended before all counted values, or before all slots
  kWrongWidth,     ///< a dense slot with a number of values other than its shape's
  kTrailing,       ///< tokens after the last slot
  kNonFinite,      ///< NaN or infinity where they are rejected
  kNulByte,        ///< a byte 0
  kRefused,        ///< rejected by a plugin's parser
  kDamaged,        ///< a record with a wrong checksum, or not a message
};

/// "bad_count", "overflow", ...
std::string_view LineErrorKindName(LineErrorKind kind);

/// The error of a line and its position.
struct LineError {
  LineErrorKind kind = LineErrorKind::kBadValue;
  size_t column = 1;        ///< byte of the line, from 1
  std::string slot;         ///< empty if no slot is responsible
  std::string expectation;  ///< "value 2 of 3 to be an unsigned 64-bit number"
  std::string snippet;      ///< the offending token, printable; empty at the end of the line
  std::string message;      ///< replaces expectation and snippet: from a plugin, or for input that is not text
  /// The next record cannot be found: reading ends, whatever the bad-line policy.
  bool ends_reading = false;

  /// `slot "C1": expected value 2 of 3 to be an unsigned 64-bit number, found "0x10"`. Control characters of a plugin's
  /// message are escaped.
  std::string ToString() const;
  /// kBadData "FILE:LINE:COLUMN: " and ToString().
  Status ToStatus(std::string_view file, uint64_t line) const;
};

/// Counts of unusual values that are not errors.
struct ValueCounters {
  int64_t blank_lines = 0;
  int64_t float_overflows = 0;   ///< 1e50: read as infinity
  int64_t float_underflows = 0;  ///< 1e-50: read as 0
  int64_t non_finite = 0;        ///< written as nan or inf, or read as infinity
  int64_t zeros_dropped = 0;
  int64_t empty_slots = 0;
  int64_t trailing_lines = 0;  ///< lines with tokens after the last slot
  int64_t other_times = 0;     ///< lines excluded by data_desc.rows
  int64_t number_forms = 0;    ///< values of NumberForm::nth

  ValueCounters& operator+=(const ValueCounters& other);
  friend bool operator==(const ValueCounters&, const ValueCounters&) = default;
  /// Adds every count above 0 under its name: "blank_line", "float_overflow", "float_underflow", "non_finite",
  /// "zero_dropped", "empty_slot_allowed", "trailing_ignored", "of_other_times". Ignores number_forms.
  void AddTo(std::map<std::string, int64_t>& counters) const;
};

}  // namespace millrace
