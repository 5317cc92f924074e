#pragma once

#include <cstddef>
#include <string_view>

namespace millrace {

/// Returns the length of the well-formed UTF-8 character at `position` (1 to 4 bytes), or 0 if there is none: a stray
/// or missing continuation byte, an overlong form, a surrogate, or a value beyond U+10FFFF.
size_t Utf8Length(std::string_view text, size_t position);

/// Written by some programs at the start of a text file.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

inline std::string_view WithoutByteOrderMark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

/// Whether all bytes are below 0x80.
inline bool IsAscii(std::string_view text) {
  unsigned char bits = 0;
  for (const char c : text) bits = static_cast<unsigned char>(bits | static_cast<unsigned char>(c));
  return bits < 0x80;
}

/// The first byte that is not part of a well-formed character; text.size() if there is none.
size_t FindNoUtf8(std::string_view text);

}  // namespace millrace
