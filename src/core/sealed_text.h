#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Appends a last line with the text's checksum, which Text formats that know '#' comments read over.
std::string SealText(std::string text);

/// Reads a file that SealText ended and takes the last line off. kBadData when it is missing, cut off or changed.
Result<std::string> ReadSealedText(const std::string& path);

}  // namespace millrace
