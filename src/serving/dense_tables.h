#pragma once

#include <string>
#include <vector>

#include "core/long_work.h"
#include "core/status.h"
#include "framework.pb.h"
#include "runtime/scope.h"

namespace millrace {

/// A growing table, viewed as a [vocabulary, dim] parameter by lookups with one salt.
struct DenseTable {
  std::string parameter;  ///< name of its variable in the program
  std::string table;      ///< name of the table's variable
  uint64_t salt = 0;      ///< salt of the lookups (TableDesc.key SLOT_AND_ID); 0: none
};

/// Converts lookups in growing tables to lookups in dense parameters of `vocabulary` rows, named "TABLE" or, for a
/// table with per-slot rows, "TABLE.SLOT". Fails with kInvalidConfig, naming every table, if there are tables and
/// `vocabulary` is 0.
Result<std::vector<DenseTable>> ReplaceTables(int64_t vocabulary, ProgramDesc& program);

/// Creates each parameter in `dense` from its table in `root`: row i is the result of looking up id i; an untrained id
/// gets the initial row. No thread may train meanwhile. Allocates vocabulary * dim floats each. Fails with
/// kInvalidConfig if a table has rows of other ids, whose predictions would silently change; kCancelled after a stop
/// request of `work`.
Status FillDenseTables(const std::vector<DenseTable>& tables, int64_t vocabulary, const Scope& root, Scope& dense,
                       const LongWork& work = {});

}  // namespace millrace
