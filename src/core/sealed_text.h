#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Appends a last line with the text's checksum; text formats with '#' comments ignore it.
std::string SealText(std::string text);

/// Reads a file written with SealText and removes the last line. Fails with kBadData if the file is missing, truncated
/// or changed.
Result<std::string> ReadSealedText(const std::string& path);

}  // namespace millrace
