#pragma once

#include <string>

#include "core/status.h"

namespace millrace {

/// Fails with kBadData if `path` exists but is not a regular file (a pipe would block, a device has no end), kNotFound
/// if it is missing, kIo if it cannot be inspected.
Status CheckPlainFile(const std::string& path);

}  // namespace millrace
