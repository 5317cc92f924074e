#pragma once

#include <string>
#include <vector>

#include "core/long_work.h"
#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

/// A table that grows, seen as a [vocabulary, dim] parameter by lookups of one salt.
struct DenseTable {
  std::string parameter;  ///< its variable in the program
  std::string table;      ///< the table's variable
  uint64_t salt = 0;      ///< of the lookups (TableDesc.key SLOT_AND_ID); 0: none
};

/// Makes lookups in tables that grow lookups in dense parameters of `vocabulary` rows, "TABLE" or, for a table whose
/// slots have rows of their own, "TABLE.SLOT". kInvalidConfig that names every table when `vocabulary` is 0 and there
/// are tables.
Result<std::vector<DenseTable>> ReplaceTables(int64_t vocabulary, ProgramDesc& program);

/// Makes each parameter in `dense` from its table in `root`: row i is what a lookup of id i shows; one that was never
/// trained is what a new row starts with. kInvalidConfig when a table has rows of other ids: predictions of such ids
/// would change silently. Nobody may train meanwhile. Allocates vocabulary * dim floats for each. kCancelled when
/// `work` is stopped.
Status FillDenseTables(const std::vector<DenseTable>& tables, int64_t vocabulary, const Scope& root, Scope& dense,
                       const LongWork& work = {});

}  // namespace millrace
