#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Whether a name is relative and does not leave its folder through "..".
bool StaysInFolder(std::string_view name);

/// Whether a path exists, or the system cannot tell (opening it will).
bool MayBeThere(const std::string& path);

/// The path of a file that must be in `folder`, which can be untrusted: a regular file inside the folder even after
/// resolving links. Fails with kBadData for a name or a link that leaves the folder, a broken link, or a special file
/// (a pipe would block, a device has no end), kNotFound for a missing file, kIo if it cannot be inspected.
Result<std::string> FileInFolder(const std::string& folder, const std::string& name);

}  // namespace millrace
