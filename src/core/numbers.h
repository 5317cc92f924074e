#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// Result of parsing a float.
enum class FloatText : uint8_t {
  kFinite,
  kNonFinite,  ///< written as nan or inf
  kOverflow,   ///< too large: read as infinity
  kUnderflow,  ///< not zero, but read as zero
  kNoNumber,
};

/// Parses all of `token` like strtof in the C locale (sign, decimals, exponent, hexadecimal floats, nan, inf; rounded
/// to nearest), independent of the process's locale. Sets `value` except for kNoNumber.
FloatText ParseFloat(std::string_view token, float* value);
FloatText ParseDouble(std::string_view token, double* value);

/// `value` for printing: NaN without its meaningless sign.
template <class T>
T WithoutNanSign(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

/// Result of parsing an id or a count.
enum class IntegerText : uint8_t { kOk, kNegative, kOverflow, kNoNumber };

/// Parses all of `token` as a decimal integer with an optional sign. Any negative number gives kNegative.
IntegerText ParseInteger(std::string_view token, uint64_t* value);

/// Bytes after a string that ReadNumber can read, with any content.
inline constexpr size_t kNumberPadding = 24;

/// Parses all of `text` as a decimal number, rounded to the nearest double: "12", "-0.5", "+3", "1e-7", "nan", "inf".
/// Returns false for anything else, including an empty string and numbers beyond the range of double.
bool ReadNumber(std::string_view text, double* value);

/// The plain form of an integer: "7" for "+7" and "7.0", "-1" for "-1.0"; other strings are unchanged.
std::string_view WholeNumberText(std::string_view text);

/// Parses a boolean as written by pandas, Spark and databases; nullopt for any other string.
inline std::optional<bool> ReadTruthValue(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

/// `value` with `digits` decimals, like printf's %.*f in the C locale, independent of the process's locale: a Python
/// program that imports us may use "0,5" for 0.5. NaN has no sign.
std::string FixedNumber(double value, int digits);

/// `value` with `digits` significant digits, like printf's %.*g in the C locale.
std::string GeneralNumber(double value, int digits = 6);

/// The fewest digits that distinguish a number from its neighbors, for a float from neighboring floats: "2", "0.1",
/// "1e+30"; 1.0000001 is not shown as 1. NaN has no sign.
inline std::string ShortestNumber(double value) {
  value = WithoutNanSign(value);
  char digits[40];
  const auto single = static_cast<float>(value);
  const bool is_float = static_cast<double>(single) == value || std::isnan(value);
  char* const last = digits + sizeof(digits);
  return {digits, is_float ? std::to_chars(digits, last, single).ptr : std::to_chars(digits, last, value).ptr};
}

/// Buffer size for the functions below.
inline constexpr size_t kMostDecimalText = 512;

/// Writes the output of std::to_chars in general format with precision 6, which C++ streams print, but several times
/// faster. Returns the end. Fast from 1e-16 to 1e27.
char* WriteSixDigits(double value, char* out);

/// Likewise in the fixed format with 0 to 50 decimals. Fast with up to 15 decimals and below 1e15 / 10^decimals.
char* WriteDecimals(double value, int decimals, char* out);

}  // namespace millrace
