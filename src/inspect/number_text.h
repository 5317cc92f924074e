#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// Appends a number in decimal digits.
void AppendNumber(uint64_t number, std::string* out);
/// Appends the shortest form that reads back to the same bits; NaN, Infinity, -Infinity as JSON parsers accept them.
void AppendNumber(float number, std::string* out);
void AppendNumber(double number, std::string* out);

}  // namespace millrace
