#pragma once

#include <string>
#include <string_view>

namespace millrace {

/// Compresses `text` into one gzip member. Members set end to end are one gzip file, so that blocks can be compressed
/// by different threads.
std::string GzipMember(std::string_view text);

}  // namespace millrace
