#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// The entries of a folder in no particular order; they usually know their kind without a system call. Fails with kIo
/// and the system's reason. (Iterating with the standard library's iterator throws if a later entry cannot be read.)
Result<std::vector<std::filesystem::directory_entry>> EntriesIn(const std::string& folder);

/// The names of the entries. Fails with kIo likewise.
Result<std::vector<std::string>> NamesIn(const std::string& folder);

}  // namespace millrace
