#pragma once

#include <cstddef>
#include <string_view>

namespace millrace {

/// Bytes behind a text that ReadNumber may read, whatever they are.
inline constexpr size_t kNumberPadding = 24;

/// Reads all of `text` as a decimal number, rounded to the nearest double: "12", "-0.5", "+3", "1e-7", "nan", "inf".
/// False for anything else, nothing among it, and for numbers that no double holds.
bool ReadNumber(std::string_view text, double* value);

/// "7" of "+7" and "7.0", "-1" of "-1.0": a whole number as it is written otherwise; another text as it is.
std::string_view WholeNumberText(std::string_view text);

}  // namespace millrace
