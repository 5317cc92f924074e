#include "core/harmless_text.h"

#include <algorithm>

#include "core/utf8.h"

namespace millrace {
namespace {

/// U+0000 to U+001F and U+007F to U+009F, which UTF-8 terminals obey, and the invisible byte order mark.
bool IsControl(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  return byte(0) < ' ' || byte(0) == 0x7F || (byte(0) == 0xC2 && byte(1) < 0xA0) || character == "\xEF\xBB\xBF";
}

}  // namespace

std::string Harmless(std::string_view text, std::string_view keep) {
  std::string shown;
  while (!text.empty()) {
    const size_t length = Utf8Length(text, 0);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(character.size());
    if (length > 0 && (!IsControl(character) || keep.find(character) != std::string_view::npos)) {
      shown += character;
      continue;
    }
    for (const char c : character) {
      constexpr char kHex[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      shown += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return shown;
}

Status Harmless(const Status& failure) { return {failure.code(), Harmless(failure.message(), "\n\t")}; }

}  // namespace millrace
