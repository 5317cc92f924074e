#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// A line of at most about `most` bytes: of a longer one both ends, and how long it is.
std::string Shortened(std::string_view line, size_t most);

/// The first `most` bytes of a text, or fewer, as no character is cut.
std::string_view StartOf(std::string_view text, size_t most);

}  // namespace millrace
