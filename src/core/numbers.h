#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace millrace {

// Functions that read and write numbers and booleans as text, always in the C locale: a Python program that imports us
// may use "0,5" for 0.5. They can be called from any thread. Readers parse a whole string. core/digits.h parses numbers
// inside a line.
//
// clang-format off
// reader           accepts                                    out of range                   speed
// ReadWhole        -7 (signed), 1e-7, nan, inf, base 2 to 36  false                          std::from_chars
// ReadSigned       like ReadWhole, and +7                     false                          std::from_chars
// ReadNumber       like ReadSigned<double>                    false                          eight digits at a time
// ParseInteger     7, +7                                      kNegative, kOverflow           std::from_chars
// ParseFloat       like strtof: +.5, 0x1p-2, nan, -inf        kOverflow: inf, kUnderflow: 0  std::from_chars
// ParseDouble      like strtod                                like ParseFloat                std::from_chars
// ReadTruthValue   true, True, TRUE, false, False, FALSE      -                              comparisons
//
// writer           output                                       NaN          speed
// ExactNumber      fewest digits that give the same bits        nan or -nan  std::to_chars
// AppendExact      like ExactNumber, appended to a string       nan or -nan  std::to_chars
// ShortestNumber   like ExactNumber, of the float if equal      nan          std::to_chars
// FixedNumber      printf's %.*f                                nan          like WriteDecimals
// GeneralNumber    printf's %.*g                                nan          std::to_chars
// WriteDecimals    printf's %.*f, into a buffer                 nan or -nan  fast below 1e15 / 10^decimals
// WriteSixDigits   printf's %g, into a buffer                   nan or -nan  fast from 1e-16 to 1e27
// clang-format on

/// Parses all of `text` with std::from_chars, for integers in the given base. False: not such a number, or out of
/// range; `value` is undefined then.
template <class Number, class... Base>
bool ReadWhole(std::string_view text, Number* value, Base... base) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value, base...);
  return error == std::errc() && stop == end;
}

/// ReadWhole that also accepts a plus sign.
template <class Number>
bool ReadSigned(std::string_view text, Number* value) {
  const bool has_plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  return ReadWhole(text.substr(has_plus ? 1 : 0), value);
}

/// Bytes after a string that ReadNumber can read, with any content.
inline constexpr size_t kNumberPadding = 24;

/// ReadSigned for a double, faster for short decimals: "12", "-0.5", "+3", "1e-7", "nan", "inf".
bool ReadNumber(std::string_view text, double* value);

/// The plain form of an integer: "7" for "+7" and "7.0", "-1" for "-1.0"; other strings are unchanged.
std::string_view WholeNumberText(std::string_view text);

/// Result of parsing an id or a count.
enum class IntegerText : uint8_t { kOk, kNegative, kOverflow, kNoNumber };

/// Parses all of `token` as a decimal integer with an optional sign. Any negative number gives kNegative.
IntegerText ParseInteger(std::string_view token, uint64_t* value);

/// Result of parsing a float.
enum class FloatText : uint8_t {
  kFinite,
  kNonFinite,  ///< written as nan or inf
  kOverflow,   ///< too large: read as infinity
  kUnderflow,  ///< not zero, but read as zero
  kNoNumber,
};

/// Parses all of `token` like strtof (sign, decimals, exponent, hexadecimal floats, nan, inf; rounded to nearest). Sets
/// `value` except for kNoNumber.
FloatText ParseFloat(std::string_view token, float* value);
FloatText ParseDouble(std::string_view token, double* value);

/// Parses a boolean as written by pandas, Spark and databases; nullopt for any other string.
inline std::optional<bool> ReadTruthValue(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

/// `value` for printing: NaN without its meaningless sign.
template <class T>
T WithoutNanSign(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

/// Appends the fewest digits that read back as the same number of this type: "2", "0.1", "1e+30", "-inf".
template <class Number>
void AppendExact(Number number, std::string* out) {
  char digits[48];
  out->append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

template <class Number>
std::string ExactNumber(Number number) {
  std::string text;
  AppendExact(number, &text);
  return text;
}

/// ExactNumber of the float that equals `value`, otherwise of `value`: "0.1" for 0.1F; 1.0000001 is not shown as 1.
std::string ShortestNumber(double value);

/// `value` with `digits` decimals, 0 to 50.
std::string FixedNumber(double value, int digits);

/// `value` with `digits` significant digits.
std::string GeneralNumber(double value, int digits = 6);

/// Buffer size for the functions below.
inline constexpr size_t kMostDecimalText = 512;

/// Writes the output of std::to_chars in general format with precision 6, which C++ streams print, but several times
/// faster. Returns the end.
char* WriteSixDigits(double value, char* out);

/// Likewise in the fixed format with 0 to 50 decimals.
char* WriteDecimals(double value, int decimals, char* out);

}  // namespace millrace
