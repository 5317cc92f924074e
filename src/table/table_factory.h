#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/registry.h"
#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

/// Makes an empty table that `desc` describes, whose rows start by `seed`; or says what in it the class cannot follow.
/// It may carry what its tables need: a connection, say.
using TableMaker = std::function<Result<std::unique_ptr<SparseTable>>(const TableDesc& desc, uint64_t seed)>;

/// Classes of tables that grow, by name: TableDesc.class_name. A table that lies elsewhere is one of them.
class TableFactory : public Registry<TableMaker> {
 public:
  TableFactory() : Registry("table of the class") {}
  /// With "HashTable".
  static TableFactory Builtin();
  /// kInvalidConfig for an unknown class, with all names that there are; otherwise the errors of the class.
  Result<std::unique_ptr<SparseTable>> Create(const TableDesc& desc, uint64_t seed) const;
};

}  // namespace millrace
