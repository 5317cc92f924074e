#pragma once

#include <string>

#include "core/status.h"

namespace millrace {

/// kBadData for what is there and no plain file: a named pipe would be waited for, a device has no end; kNotFound, kIo.
Status CheckPlainFile(const std::string& path);

}  // namespace millrace
