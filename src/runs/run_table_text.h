#pragma once

#include <cstddef>
#include <string>

#include "runs/run_comparison.h"

namespace millrace {

/// Columns of a terminal that a table takes at most.
inline constexpr size_t kTableColumns = 120;

/// The table for a terminal, with the best marked by "*". Of one that is wider than `columns` the most telling columns
/// are shown: the best of a metric that runs are ordered by, short fields, metrics; what is left out stands below.
std::string RunTableText(const RunTable& table, size_t columns = kTableColumns);

}  // namespace millrace
