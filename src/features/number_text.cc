#include "features/number_text.h"

#include <charconv>
#include <cstdint>

#include "core/plain_decimal.h"
#include "core/swar_digits.h"

namespace millrace {
namespace {

/// Reads "-12.345" of at most seven digits on each side of the point: numbers of 14 digits and powers of ten up to 7
/// are exact as doubles, so that their quotient is rounded once. False: leave it to the standard library.
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

}  // namespace millrace
