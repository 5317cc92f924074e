#pragma once

#include <cstdint>
#include <memory>

#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// A hash table in the memory of this process, as `desc` says (dim, init and optimizer, or accessor; initial_rows). A
/// row starts with values that depend on `seed`, the table's name and the key alone, whichever thread makes it. Rows
/// never move: what a RowBatch shows stays where it is until the table's end.
Result<std::unique_ptr<SparseTable>> CreateHashTable(const TableDesc& desc, uint64_t seed);

}  // namespace millrace
