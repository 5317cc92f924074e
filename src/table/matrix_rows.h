#pragma once

#include <span>

#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// Fills an empty table of the matrix's width: row i becomes the row of key i, with the optimizer state of a new row.
/// Needs memory for a second copy of the matrix. Fails with kInvalidConfig for a table that counts shows and clicks,
/// otherwise like SparseTable::Load.
Status LoadMatrixRows(std::span<const float> matrix, SparseTable* table);

}  // namespace millrace
