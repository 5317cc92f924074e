#pragma once

#include <optional>
#include <string_view>

namespace millrace {

/// Parses a boolean as written by pandas, Spark and databases; nullopt for any other string.
inline std::optional<bool> ReadTruthValue(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

}  // namespace millrace
