#pragma once

#include <optional>
#include <string_view>

namespace millrace {

/// The truth value that a text is, as pandas, Spark and databases write them; nothing of any other text.
inline std::optional<bool> ReadTruthValue(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

}  // namespace millrace
