#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

/// Appends a number in decimal digits.
void AppendNumber(uint64_t number, std::string* out);
/// Appends the shortest form that reads back to the same bits; NaN, Infinity, -Infinity as JSON readers know them.
void AppendNumber(float number, std::string* out);
void AppendNumber(double number, std::string* out);
/// Appends `text` in quotes with JSON's escapes; bytes that are not UTF-8 are kept.
void AppendQuoted(std::string_view text, std::string* out);

}  // namespace millrace
