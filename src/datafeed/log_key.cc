#include "datafeed/log_key.h"

#include "core/numbers.h"

namespace millrace {
namespace {

constexpr size_t kDigits = 32;

}  // namespace

std::optional<LogKey> ParseLogKey(std::string_view text) {
  LogKey key;
  uint64_t start = 0;
  if (text.size() != kDigits || !ReadWhole(text.substr(0, 11), &start, 16) ||
      !ReadWhole(text.substr(11, 3), &key.cmatch, 16) || !ReadWhole(text.substr(14, 2), &key.rank, 16) ||
      !ReadWhole(text.substr(16), &key.search_id, 16)) {
    return std::nullopt;
  }
  return key;
}

}  // namespace millrace
