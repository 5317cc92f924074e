#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// Whether two names refer to one regular file, also through links: writing one would overwrite the other.
bool IsSamePlainFile(const std::string& a, const std::string& b);

/// Whether an open file is still reachable under its name: false for a regular file that was removed, replaced or
/// truncated below `bytes` since it was opened. Always true for pipes and devices.
bool IsStillUnder(int fd, const std::string& path, int64_t bytes = 0);

}  // namespace millrace
