#pragma once

#include <cstddef>
#include <string_view>

namespace millrace {

/// Returns the length of the well-formed UTF-8 character that starts at `position` (1 to 4 bytes), or 0 when there is
/// none: a stray or missing continuation byte, an overlong form, a surrogate, or beyond U+10FFFF.
size_t Utf8Length(std::string_view text, size_t position);

}  // namespace millrace
