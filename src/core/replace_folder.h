#pragma once

#include <string>

#include "core/status.h"

namespace millrace {

/// Puts the finished folder `from` under the name `to`, in one step: whoever looks sees the old folder or the new one.
/// The old one, if any, is removed. Both must be on one file system. kIo.
Status ReplaceFolder(const std::string& from, const std::string& to);

/// Removes a folder with everything in it; one that is not there is no error. kIo.
Status RemoveFolder(const std::string& path);

}  // namespace millrace
