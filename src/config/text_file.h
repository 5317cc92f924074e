#pragma once

#include <string>

#include "core/status.h"

namespace millrace {

/// Reads a text file that a configuration names. A missing file (with the nearest existing name), a folder, one that
/// may not be read or is not text: kInvalidConfig, without the name of the asker.
Result<std::string> ReadTextFile(const std::string& path);

/// Says what of a path does not exist, and what was probably meant:
/// `no file "part-0O" in data; did you mean "part-00"?` or `no folder "dta"; did you mean "data"?`.
std::string ExplainMissingFile(const std::string& path);

}  // namespace millrace
