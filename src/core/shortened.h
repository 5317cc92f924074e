#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// A line of at most about `most` bytes: of a longer one both ends, and how long it is.
std::string Shortened(std::string_view line, size_t most);

}  // namespace millrace
