#include "datafeed/line_error.h"

#include "core/harmless_text.h"

namespace millrace {

std::string_view LineErrorKindName(LineErrorKind kind) {
  switch (kind) {
    case LineErrorKind::kBadPrefix: return "bad_prefix";
    case LineErrorKind::kBadCount: return "bad_count";
    case LineErrorKind::kEmptySlot: return "empty_slot";
    case LineErrorKind::kBadValue: return "bad_value";
    case LineErrorKind::kOverflow: return "overflow";
    case LineErrorKind::kNegativeId: return "negative_id";
    case LineErrorKind::kMissingValues: return "missing_values";
    case LineErrorKind::kWrongWidth: return "wrong_width";
    case LineErrorKind::kTrailing: return "trailing_values";
    case LineErrorKind::kNonFinite: return "non_finite_value";
    case LineErrorKind::kNulByte: return "nul_byte";
    case LineErrorKind::kRefused: return "refused";
    case LineErrorKind::kDamaged: return "damaged";
  }
  return "unknown";
}

std::string LineError::ToString() const {
  std::string text;
  if (!slot.empty()) text += "slot \"" + slot + "\": ";
  if (!message.empty()) return Harmless(text + message);
  text += "expected " + expectation + ", found ";
  text += snippet.empty() ? "the end of the line" : "\"" + snippet + "\"";
  return Harmless(text);
}

Status LineError::ToStatus(std::string_view file, uint64_t line) const {
  return BadData(std::string(file) + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + ToString());
}

ValueCounters& ValueCounters::operator+=(const ValueCounters& other) {
  blank_lines += other.blank_lines;
  float_overflows += other.float_overflows;
  float_underflows += other.float_underflows;
  non_finite += other.non_finite;
  zeros_dropped += other.zeros_dropped;
  empty_slots += other.empty_slots;
  trailing_lines += other.trailing_lines;
  other_times += other.other_times;
  number_forms += other.number_forms;
  return *this;
}

void ValueCounters::AddTo(std::map<std::string, int64_t>& counters) const {
  const auto add = [&counters](const char* name, int64_t count) {
    if (count > 0) counters[name] += count;
  };
  add("blank_line", blank_lines);
  add("float_overflow", float_overflows);
  add("float_underflow", float_underflows);
  add("non_finite", non_finite);
  add("zero_dropped", zeros_dropped);
  add("empty_slot_allowed", empty_slots);
  add("trailing_ignored", trailing_lines);
  add("of_other_times", other_times);
}

}  // namespace millrace
