#pragma once

#include <charconv>
#include <cmath>
#include <string>

#include "core/float_text.h"

namespace millrace {

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

}  // namespace millrace
