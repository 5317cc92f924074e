#include "core/integer_text.h"

#include <charconv>
#include <system_error>

namespace millrace {

IntegerText ParseInteger(std::string_view token, uint64_t* value) {
  const bool negative = !token.empty() && token.front() == '-';
  if (negative || (!token.empty() && token.front() == '+')) token.remove_prefix(1);
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), *value);
  if (end != token.data() + token.size() || error == std::errc::invalid_argument) return IntegerText::kNoNumber;
  if (negative) return IntegerText::kNegative;
  return error == std::errc() ? IntegerText::kOk : IntegerText::kOverflow;
}

}  // namespace millrace
