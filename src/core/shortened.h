#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// A line of about `most` bytes: a longer one is reduced to both ends and its length.
std::string Shortened(std::string_view line, size_t most);

/// The first `most` bytes of a text, or fewer to avoid cutting a character.
std::string_view StartOf(std::string_view text, size_t most);

}  // namespace millrace
