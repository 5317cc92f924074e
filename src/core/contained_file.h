#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// True for a relative name that no ".." leads out of the folder that it is relative to.
bool StaysInFolder(std::string_view name);

/// True for a path where something is, or where the system cannot say: whoever opens it will.
bool MayBeThere(const std::string& path);

/// The path of a file that belongs to `folder`, which may come from anywhere: a plain file, below the folder also where
/// links lead to it. kBadData for a name that leaves the folder, a link out of it or to nothing, and what is no plain
/// file (a named pipe would be waited for, a device has no end); kNotFound when there is no such file.
Result<std::string> FileInFolder(const std::string& folder, const std::string& name);

}  // namespace millrace
