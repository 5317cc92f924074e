#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/tensor.h"

namespace millrace {

/// Whether text files may hold values of this type: float32, float64, int32, int64, uint8.
bool IsFieldType(DType type);

/// Reads all of `field`, a number of `type`, to values[index]; false when it is none, or does not fit the type. Ids
/// above 2^63 - 1 are kept in their 64 bits. Spaces around the number do not count.
bool ParseField(std::string_view field, DType type, void* values, size_t index);

/// Whether ParseField read a whole number below 0 from `field`, and not an id above 2^63 - 1.
bool IsNegative(std::string_view field);
/// What text formats advise for NegativeId.
inline constexpr std::string_view kTextIdAdvice =
    "ids are 0 to 18446744073709551615: leave out what only fills up a list, or give it an id of its own";

/// `"12x"`, shortened, for messages, with what a terminal would obey as "\x1b"; "nothing" when it is empty.
std::string ShownField(std::string_view field);

}  // namespace millrace
