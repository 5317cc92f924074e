#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// What files of saved tables (docs/formats/table.md) hold, each a few lines, as `inspect table` prints it: the table,
/// its rows and rule, and of one with an accessor, saved with its state, its counts. Reads every row, so that a damaged
/// file is found. The errors of TableReader, with the file's name.
Result<std::string> ListTables(const std::vector<std::string>& paths);

}  // namespace millrace
