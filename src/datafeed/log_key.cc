#include "datafeed/log_key.h"

#include <charconv>

namespace millrace {
namespace {

constexpr size_t kDigits = 32;

template <class T>
bool ReadHex(std::string_view digits, T* value) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, *value, 16);
  return error == std::errc() && stop == end;
}

}  // namespace

std::optional<LogKey> ParseLogKey(std::string_view text) {
  LogKey key;
  uint64_t start = 0;
  if (text.size() != kDigits || !ReadHex(text.substr(0, 11), &start) || !ReadHex(text.substr(11, 3), &key.cmatch) ||
      !ReadHex(text.substr(14, 2), &key.rank) || !ReadHex(text.substr(16), &key.search_id)) {
    return std::nullopt;
  }
  return key;
}

}  // namespace millrace
