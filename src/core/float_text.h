#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace millrace {

/// How the text of a float was read.
enum class FloatText : uint8_t {
  kFinite,
  kNonFinite,  ///< written as nan or inf
  kOverflow,   ///< too large: read as infinity
  kUnderflow,  ///< not zero, but read as zero
  kNoNumber,
};

/// Reads all of `token` as strtof would in the C locale (sign, decimals, exponent, hexadecimal floats, nan, inf;
/// rounded to nearest), whatever locale the process has. `value` is written unless the answer is kNoNumber.
FloatText ParseFloat(std::string_view token, float* value);
FloatText ParseDouble(std::string_view token, double* value);

/// What to print of `value`: a NaN without its sign, which says nothing.
template <class T>
T WithoutNanSign(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

}  // namespace millrace
