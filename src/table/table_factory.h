#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/registry.h"
#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// Creates an empty table from `desc`; `seed` determines initial rows. Fails with kInvalidConfig for a setting that the
/// class does not support. A maker can hold what its tables need, such as a connection.
using TableMaker = std::function<Result<std::unique_ptr<SparseTable>>(const TableDesc& desc, uint64_t seed)>;

/// Classes of tables by name: TableDesc.class_name, including tables stored elsewhere.
class TableFactory : public Registry<TableMaker> {
 public:
  TableFactory() : Registry("table of the class") {}
  /// Contains "HashTable".
  static TableFactory Builtin();
  /// Fails with kInvalidConfig for an unknown class, listing all names; otherwise with the errors of the class.
  Result<std::unique_ptr<SparseTable>> Create(const TableDesc& desc, uint64_t seed) const;
};

}  // namespace millrace
