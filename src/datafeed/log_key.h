#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace millrace {

/// A parsed log key: 32 hex digits that identify an example and its search.
struct LogKey {
  uint64_t search_id = 0;  ///< digits 16 to 31, from 0
  uint32_t cmatch = 0;     ///< digits 11 to 13
  uint32_t rank = 0;       ///< digits 14 and 15
};

/// Nullopt if `text` is not a log key.
std::optional<LogKey> ParseLogKey(std::string_view text);

}  // namespace millrace
