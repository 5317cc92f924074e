#include "datafeed/text_feed.h"

#include "core/numbers.h"
#include "reader/field_value.h"

namespace millrace {

bool TextFeed::ReadFloat(const SlotSpec& slot, std::string_view token) {
  float value = 0;
  const char* const end = token.data() + token.size();
  if (ReadPlainFloat(token.data(), &value, &guess_, [end](const char* at) { return at == end; }) == nullptr) {
    switch (ParseFloat(token, &value)) {
      case FloatText::kNoNumber: return BadToken(LineErrorKind::kBadValue, slot, "a number", token);
      case FloatText::kOverflow: ++counted().float_overflows; break;
      case FloatText::kUnderflow: ++counted().float_underflows; break;
      default: break;
    }
  }
  floats_.push_back(value);
  return true;
}

bool TextFeed::ReadId(const SlotSpec& slot, std::string_view token) {
  uint64_t id = 0;
  switch (ParseInteger(token, &id)) {
    case IntegerText::kOk: break;
    case IntegerText::kNegative: return BadToken(LineErrorKind::kNegativeId, slot, "an id without a minus", token);
    case IntegerText::kOverflow:
      return BadToken(LineErrorKind::kOverflow, slot, "an id of at most 18446744073709551615", token);
    case IntegerText::kNoNumber: return BadToken(LineErrorKind::kBadValue, slot, "an unsigned integer", token);
  }
  ids_.push_back(id);
  return true;
}

bool TextFeed::BadToken(LineErrorKind kind, const SlotSpec& slot, const std::string& expected, std::string_view token) {
  return Fail(kind, slot.name, "expected " + expected + ", found " + ShownField(token), ColumnOf(token));
}

}  // namespace millrace
