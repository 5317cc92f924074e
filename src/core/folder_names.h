#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// The names in a folder, in no order. kIo with the system's reason. (A range of the standard library's iterator throws
/// at what it meets behind the first name.)
Result<std::vector<std::string>> NamesIn(const std::string& folder);

}  // namespace millrace
