#pragma once

#include <cstdint>
#include <memory>

#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// Creates a hash table in this process from `desc` (dim, init and optimizer, or accessor; initial_rows). Initial
/// values of a row depend only on `seed`, the table's name and the key, not on threads. Rows never move while the table
/// exists. Fails with kInvalidConfig for an invalid setting.
Result<std::unique_ptr<SparseTable>> CreateHashTable(const TableDesc& desc, uint64_t seed);

}  // namespace millrace
