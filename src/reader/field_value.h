#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/tensor.h"

namespace millrace {

/// Whether text files can contain this type: float32, float64, int32, int64, uint8.
bool IsFieldType(DType type);

/// Parses all of `field` as a `type` into values[index]; false if it is not a number or out of range. Ids above 2^63 -
/// 1 keep their 64 bits. Ignores surrounding spaces.
bool ParseField(std::string_view field, DType type, void* values, size_t index);

/// Whether ParseField read a negative integer, not an id above 2^63 - 1.
bool IsNegative(std::string_view field);
/// Advice of text formats for NegativeId.
inline constexpr std::string_view kTextIdAdvice =
    "ids are 0 to 18446744073709551615: leave out what only fills up a list, or give it an id of its own";

/// `"12x"` for messages, shortened, with control characters escaped as "\x1b"; "nothing" if empty.
std::string ShownField(std::string_view field);

}  // namespace millrace
