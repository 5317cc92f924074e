#include "core/float_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace millrace {
namespace {

bool IsDigit(char c, bool hex) {
  return (c >= '0' && c <= '9') || (hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
}

// Digits and point of an unsigned number, before its exponent.
std::string_view Mantissa(std::string_view number, bool hex) {
  size_t size = 0;
  while (size < number.size() && (IsDigit(number[size], hex) || number[size] == '.')) ++size;
  return number.substr(0, size);
}

bool HasNonZeroDigit(std::string_view mantissa) {
  return std::any_of(mantissa.begin(), mantissa.end(), [](char c) { return c != '0' && c != '.'; });
}

// Whether a number outside the range of floats is too large, otherwise too small.
bool IsTooLarge(std::string_view number, bool hex) {
  const std::string_view mantissa = Mantissa(number, hex);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const size_t first = mantissa.find_first_not_of("0.");
  const auto magnitude = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  std::string_view exponent = number.substr(mantissa.size());
  if (!exponent.empty()) exponent.remove_prefix(1);
  const bool negative = !exponent.empty() && exponent.front() == '-';
  if (!exponent.empty() && (negative || exponent.front() == '+')) exponent.remove_prefix(1);
  int64_t power = 0;
  const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (error == std::errc::result_out_of_range) return !negative;
  if (negative) power = -power;
  return magnitude * (hex ? 4 : 1) + power > 0;
}

template <class T>
FloatText Parse(std::string_view token, T* value) {
  bool negative = false;
  if (!token.empty() && (token.front() == '+' || token.front() == '-')) {
    negative = token.front() == '-';
    token.remove_prefix(1);
  }
  if (token.empty() || token.front() == '+' || token.front() == '-') return FloatText::kNoNumber;
  const bool hex = token.size() > 2 && token[0] == '0' && (token[1] == 'x' || token[1] == 'X');
  if (hex) token.remove_prefix(2);
  if (hex && Mantissa(token, hex).find_first_not_of('.') == std::string_view::npos) return FloatText::kNoNumber;

  T magnitude = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), magnitude,
                                            hex ? std::chars_format::hex : std::chars_format::general);
  if (end != token.data() + token.size() || error == std::errc::invalid_argument) return FloatText::kNoNumber;

  FloatText result = FloatText::kFinite;
  const bool is_digits = IsDigit(token.front(), hex) || token.front() == '.';
  if (error == std::errc::result_out_of_range) {
    // The standard library does not set the value.
    magnitude = IsTooLarge(token, hex) ? std::numeric_limits<T>::infinity() : T{0};
  }
  if (!std::isfinite(magnitude)) {
    result = is_digits ? FloatText::kOverflow : FloatText::kNonFinite;
  } else if (magnitude == 0 && HasNonZeroDigit(Mantissa(token, hex))) {
    result = FloatText::kUnderflow;
  }
  *value = negative ? -magnitude : magnitude;
  return result;
}

}  // namespace

FloatText ParseFloat(std::string_view token, float* value) { return Parse(token, value); }
FloatText ParseDouble(std::string_view token, double* value) { return Parse(token, value); }

}  // namespace millrace
