#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// What is in a folder, in no order; an entry mostly knows its kind without a look at the file. kIo with the system's
/// reason. (A range over the standard library's iterator throws where a later entry cannot be read.)
Result<std::vector<std::filesystem::directory_entry>> EntriesIn(const std::string& folder);

/// Their names.
Result<std::vector<std::string>> NamesIn(const std::string& folder);

}  // namespace millrace
