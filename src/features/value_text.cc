#include "features/value_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "core/numbers.h"
#include "data_feed.pb.h"
#include "features/time_text.h"

namespace millrace {
namespace {

constexpr size_t kLongestFloat = 48;

/// The parts of a decimal number: "-12.5e+07".
struct Decimal {
  std::string_view whole;
  std::string_view fraction;
  std::string_view exponent;  ///< with sign; empty: none
};

size_t DigitsOf(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  return count;
}

/// Splits a number with a point or an exponent; false for other strings.
bool CutDecimal(std::string_view text, Decimal* parts) {
  constexpr size_t kMostOfExponent = 3;
  if (text.starts_with('-')) text.remove_prefix(1);
  parts->whole = text.substr(0, DigitsOf(text));
  text.remove_prefix(parts->whole.size());
  if (parts->whole.empty() || text.empty()) return false;
  if (text.front() == '.') {
    text.remove_prefix(1);
    parts->fraction = text.substr(0, DigitsOf(text));
    text.remove_prefix(parts->fraction.size());
    if (parts->fraction.empty()) return false;
    if (text.empty()) return true;
  }
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  parts->exponent = text;
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  const size_t digits = DigitsOf(text);
  return digits == text.size() && digits > 0 && digits <= kMostOfExponent;
}

/// Whether an exponent is in the form that programs write. Tokens of hexadecimal digits are words: as numbers, "0e12"
/// and "0e34" would be equal, and so would "1e2" and "1e02".
bool IsExponentOfPrograms(const Decimal& parts) {
  const bool has_sign = parts.exponent[0] == '+' || parts.exponent[0] == '-';
  const bool is_zero = parts.whole == "0" && parts.fraction.find_first_not_of('0') == std::string_view::npos;
  return has_sign || (!is_zero && (parts.exponent[0] != '0' || parts.exponent.size() == 1));
}

/// Whether a program that writes the fewest digits can have written it: other numbers are words, such as the versions
/// "1.1" and "1.10", or exceed a double's precision.
bool HasNoNeedlessDigit(const Decimal& parts) {
  constexpr size_t kMostDigits = 17;
  const bool has_exponent = !parts.exponent.empty();
  if (has_exponent && !IsExponentOfPrograms(parts)) return false;
  if (parts.whole.size() > 1 && (parts.whole[0] == '0' || has_exponent)) return false;
  if (parts.fraction.size() > 1 && parts.fraction.back() == '0') return false;
  std::string_view whole = parts.whole;
  std::string_view fraction = parts.fraction;
  if (fraction == "0") {
    fraction = {};
    while (!whole.empty() && whole.back() == '0') whole.remove_suffix(1);
  }
  if (whole == "0") {
    whole = {};
    fraction.remove_prefix(std::min(fraction.find_first_not_of('0'), fraction.size()));
  }
  return whole.size() + fraction.size() <= kMostDigits;
}

std::string_view CanonicalNumber(std::string_view text, std::string* scratch) {
  constexpr size_t kAlwaysExact = 15;  // digits that a double preserves
  Decimal parts;
  if (!CutDecimal(text, &parts) || !HasNoNeedlessDigit(parts)) return text;
  // Most are already in Python's form.
  const bool is_near_one = parts.whole != "0" || parts.fraction == "0" || parts.fraction.substr(0, 4) > "0000";
  if (parts.exponent.empty() && is_near_one && parts.whole.size() + parts.fraction.size() <= kAlwaysExact) return text;
  double value = 0;
  return ReadWhole(text, &value) ? TextOfFloat(value, scratch) : text;
}

std::string_view CanonicalTime(std::string_view text, std::string* scratch) {
  IsoTime time;
  if (!ReadIsoTime(text, &time) || !time.has_clock || time.is_leap_second) return text;
  const int64_t seconds = time.seconds - int64_t{60} * time.offset_minutes.value_or(0);
  std::string_view fraction = time.fraction;
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  const CivilTime civil = CivilTimeOf(seconds);
  if (civil.year < 0 || civil.year > 9999) return text;
  const size_t most = fraction.size() + kLongestFloat + kNumberPadding;
  scratch->resize(most);
  char* const begin = scratch->data();
  int size = std::snprintf(begin, most, "%04d-%02d-%02d", civil.year, civil.month, civil.day);
  const bool is_date = civil.second_of_day == 0 && fraction.empty() && !time.offset_minutes.has_value();
  if (!is_date) {
    size += std::snprintf(begin + size, most - static_cast<size_t>(size), " %02d:%02d:%02d", civil.second_of_day / 3600,
                          civil.second_of_day / 60 % 60, civil.second_of_day % 60);
  }
  char* end = begin + size;
  if (!fraction.empty()) {
    *end++ = '.';
    end = std::copy(fraction.begin(), fraction.end(), end);
  }
  if (time.offset_minutes.has_value()) *end++ = 'Z';
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

TextRule TextRuleOf(const DataFeedDesc& desc) {
  return desc.feature_states().text_rule() >= static_cast<int>(TextRule::kCanonical) ? TextRule::kCanonical
                                                                                     : TextRule::kByFormat;
}

std::string_view TextOfFloat(double value, std::string* text) {
  text->resize(kLongestFloat + kNumberPadding);
  char* const begin = text->data();
  const double size = std::abs(value);
  char* end = begin;
  if (!std::isfinite(value)) {
    const char* const word = std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
    end = std::copy(word, word + std::strlen(word), begin);
  } else {
    // The limits of Python's repr.
    const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e16);
    const auto format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
    end = std::to_chars(begin, begin + kLongestFloat - 2, value, format).ptr;
    if (is_plain && std::find(begin, end, '.') == end) {
      *end++ = '.';
      *end++ = '0';
    }
  }
  return {begin, static_cast<size_t>(end - begin)};
}

std::string_view CanonicalTextOfNumber(std::string_view text, std::string* scratch) {
  constexpr size_t kShortestTime = sizeof("2026-11-26T10:00") - 1;
  // Most are integers.
  size_t at = text[0] == '-' ? 1 : 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  if (at == text.size()) return text;
  switch (text[at]) {
    case '.':
    case 'e':
    case 'E': return CanonicalNumber(text, scratch);
    case '-': return text.size() >= kShortestTime ? CanonicalTime(text, scratch) : text;
    default: return text;
  }
}

}  // namespace millrace
