#pragma once

#include <optional>
#include <string>

#include "core/file_stamps.h"

namespace millrace {

/// How an open file is now; nullopt for what is no plain one.
std::optional<FileStamp> StampOfOpen(int file);

/// Compares a file at the end of its reading with what it was at the beginning: kIo when it was written to or cut off
/// meanwhile, as then nobody knows which bytes were read.
Status CheckUnchanged(const std::string& path, const FileStamp& then, const FileStamp& now);

}  // namespace millrace
