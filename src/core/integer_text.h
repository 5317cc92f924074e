#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

/// How the text of an id or a count was read.
enum class IntegerText : uint8_t { kOk, kNegative, kOverflow, kNoNumber };

/// Reads all of `token` as a decimal integer with an optional sign. A minus is kNegative, whatever digits follow.
IntegerText ParseInteger(std::string_view token, uint64_t* value);

}  // namespace millrace
