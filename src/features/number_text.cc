#include "features/number_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "core/plain_decimal.h"
#include "core/swar_digits.h"

namespace millrace {
namespace {

/// Reads "-12.345" with at most seven digits on each side of the point: numbers of 14 digits and powers of ten up to 7
/// are exact as doubles, so their quotient is rounded once. False: use the standard library.
bool ReadPlain(const char* at, const char* end, double* value) {
  const bool is_negative = *at == '-';
  if (is_negative) ++at;
  const DigitRun whole = ReadDigits(at);
  if (whole.digits == 0 || whole.digits == 8) return false;
  at += whole.digits;
  auto number = static_cast<double>(whole.value);
  if (at < end && *at == '.') {
    const DigitRun part = ReadDigits(at + 1);
    if (part.digits == 8) return false;
    at += 1 + part.digits;
    number = static_cast<double>(whole.value * kPowersOfTen[part.digits] + part.value) / kExactPowers[part.digits];
  }
  *value = is_negative ? -number : number;
  return at == end;
}

}  // namespace

bool ReadNumber(std::string_view text, double* value) {
  const char* begin = text.data();
  const char* const end = begin + text.size();
  if (begin == end) return false;
  if (ReadPlain(begin, end, value)) return true;
  if (*begin == '+' && end - begin > 1 && begin[1] != '-') ++begin;
  const auto [stop, error] = std::from_chars(begin, end, *value);
  return error == std::errc() && stop == end;
}

std::string_view WholeNumberText(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::string_view whole = text.substr(text.starts_with('+') ? 1 : 0);
  const size_t begin = whole.starts_with('-') && whole.size() == text.size() ? 1 : 0;
  const size_t end = std::min(whole.find_first_not_of(kDigits, begin), whole.size());
  if (end == begin) return text;
  const bool is_whole = end == whole.size() || (whole[end] == '.' && end + 1 < whole.size() &&
                                                whole.find_first_not_of('0', end + 1) == std::string_view::npos);
  return is_whole ? whole.substr(0, end) : text;
}

}  // namespace millrace
