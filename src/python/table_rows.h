#pragma once

#include <pybind11/pybind11.h>

#include "table/sparse_table.h"

namespace millrace {

/// A copy of a table's rows as numpy arrays: (keys uint64 [rows], ascending, weights float32 [rows, dim]).
pybind11::tuple ToRows(const SparseTable& table);

}  // namespace millrace
