#pragma once

#include <string>
#include <string_view>

namespace millrace {

/// Compresses `text` to one gzip member. Concatenated members are a gzip file, so several threads can compress blocks.
std::string GzipMember(std::string_view text);

}  // namespace millrace
