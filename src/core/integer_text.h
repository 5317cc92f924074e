#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

/// Result of parsing an id or a count.
enum class IntegerText : uint8_t { kOk, kNegative, kOverflow, kNoNumber };

/// Parses all of `token` as a decimal integer with an optional sign. Any negative number gives kNegative.
IntegerText ParseInteger(std::string_view token, uint64_t* value);

}  // namespace millrace
