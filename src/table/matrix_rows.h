#pragma once

#include <span>

#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// Reads the rows of a matrix into a table of its width that has none: the first one is of the key 0. Beside them the
/// optimizer's state is that of new rows. kInvalidConfig for a table whose rows count shows and clicks. Takes memory
/// for the matrix once more.
Status LoadMatrixRows(std::span<const float> matrix, SparseTable* table);

}  // namespace millrace
