#pragma once

#include <algorithm>
#include <string>

namespace millrace {

/// The text with a-z for A-Z; other bytes stay.
inline std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

}  // namespace millrace
