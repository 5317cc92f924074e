#pragma once

#include <cstdint>

#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

class CtrRows;

/// The result of a shrink.
struct ShrinkReport {
  int64_t rows = 0;     ///< remaining rows
  int64_t deleted = 0;  ///< deleted for a low score, or unseen for too long
};

/// Totals over the rows of a table.
struct CountedRows {
  int64_t rows = 0;
  int64_t with_embedx = 0;
  double shows = 0;
  double clicks = 0;
};

/// A table whose rows count shows and clicks, and age: one with TableDesc.accessor, of a class that can delete rows.
/// Its functions require that no other call runs.
class CountedTable {
 public:
  virtual ~CountedTable() = default;
  /// Ends a day: decays shows and clicks of every row, deletes rows with a small score or unseen for too long, and adds
  /// an unseen day to the others until their next push. Invalidates RowBatches. Works on up to `threads` parts
  /// concurrently; the result does not depend on it. Fails with kUnavailable without memory for the index; the table
  /// must be discarded then.
  virtual Result<ShrinkReport> Shrink(int threads) = 0;
  /// Reports that a save of kBase or kDelta is complete: scores for the next kDelta count from here. No call may come
  /// between the save and this one. Fails only if rows in another process cannot be reached.
  virtual Status WasSaved(TableContent content) = 0;
  /// Fails only if rows in another process cannot be reached.
  virtual Result<CountedRows> Count() const = 0;
  /// The policy of its rows; lives as long as the table.
  virtual const CtrRows& policy() const = 0;
};

/// The table's interface; null without accessor or if its class cannot delete rows.
inline CountedTable* AsCounted(SparseTable* table) { return dynamic_cast<CountedTable*>(table); }
inline const CountedTable* AsCounted(const SparseTable* table) { return dynamic_cast<const CountedTable*>(table); }

}  // namespace millrace
