#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Reads a string that a shared object exports as a `const char[]` with this name, without loading it: its code does
/// not run and missing dependencies do not matter.
///
/// Fails like OpenForReading, kBadData if the file is not a valid shared object for this machine, kNotFound if it does
/// not export such a string (of at most 4096 bytes). Messages name the file.
Result<std::string> ReadExportedText(const std::string& path, std::string_view name);

}  // namespace millrace
