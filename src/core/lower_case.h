#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace millrace {

/// A-Z and a-z, like isalpha in the C locale.
inline bool IsLetter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
inline bool IsLetterOrDigit(char c) { return IsLetter(c) || (c >= '0' && c <= '9'); }

/// Replaces A-Z by a-z; other bytes do not change.
inline std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

}  // namespace millrace
