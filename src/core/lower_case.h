#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace millrace {

/// A-Z and a-z, as isalpha has them in the C locale.
inline bool IsLetter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
inline bool IsLetterOrDigit(char c) { return IsLetter(c) || (c >= '0' && c <= '9'); }

/// The text with a-z for A-Z; other bytes stay.
inline std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

}  // namespace millrace
