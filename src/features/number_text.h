#pragma once

#include <cstddef>
#include <string_view>

namespace millrace {

/// Bytes after a string that ReadNumber can read, with any content.
inline constexpr size_t kNumberPadding = 24;

/// Parses all of `text` as a decimal number, rounded to the nearest double: "12", "-0.5", "+3", "1e-7", "nan", "inf".
/// Returns false for anything else, including an empty string and numbers beyond the range of double.
bool ReadNumber(std::string_view text, double* value);

/// The plain form of an integer: "7" for "+7" and "7.0", "-1" for "-1.0"; other strings are unchanged.
std::string_view WholeNumberText(std::string_view text);

}  // namespace millrace
