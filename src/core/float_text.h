#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
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

}  // namespace millrace
