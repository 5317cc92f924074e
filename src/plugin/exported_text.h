#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Reads the text that a shared object exports as a `const char[]` of this name, without loading it: none of its code
/// runs, and nothing that it lacks is missed.
///
/// OpenForReading's errors; kBadData when the file is no shared object for this machine, or a broken one; kNotFound
/// when it exports no such text (of at most 4096 bytes). Messages name the file.
Result<std::string> ReadExportedText(const std::string& path, std::string_view name);

}  // namespace millrace
