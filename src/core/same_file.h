#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// Whether two names mean one plain file, whatever links they go through: writing to one would lose the other.
bool IsSamePlainFile(const std::string& a, const std::string& b);

/// Whether what is written to an open file can be found under its name: false for a plain file that was removed or
/// replaced since it was opened, or holds fewer than the `bytes` that were written. Pipes and devices keep nothing, and
/// are always there.
bool IsStillUnder(int fd, const std::string& path, int64_t bytes = 0);

}  // namespace millrace
