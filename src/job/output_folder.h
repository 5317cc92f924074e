#pragma once

#include <string>

#include "core/file.h"
#include "core/status.h"

namespace millrace {

/// Makes the folder that a run writes into, and keeps other runs out of it while what is returned is open; where a file
/// system knows no locks nobody is kept out, and where the folder cannot be opened nothing is. kIo where it cannot be
/// made, kInvalidConfig where another run is there.
Result<FileDescriptor> MakeOutputFolder(const std::string& folder);

}  // namespace millrace
