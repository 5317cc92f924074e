#pragma once

#include <string>

namespace millrace {

/// Whether two names mean one plain file, whatever links they go through: writing to one would lose the other.
bool IsSamePlainFile(const std::string& a, const std::string& b);

}  // namespace millrace
