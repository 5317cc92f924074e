#pragma once

#include <cstdint>

#include "core/status.h"
#include "table/sparse_table.h"

namespace millrace {

class CtrRows;

/// What a shrink did.
struct ShrinkReport {
  int64_t rows = 0;     ///< that are left
  int64_t deleted = 0;  ///< for their score, or unseen for too long
};

/// The rows of a table in sums.
struct CountedRows {
  int64_t rows = 0;
  int64_t with_embedx = 0;
  double shows = 0;
  double clicks = 0;
};

/// A table whose rows count their shows and clicks, and grow old: one with TableDesc.accessor, of a class that can
/// delete rows.
class CountedTable {
 public:
  virtual ~CountedTable() = default;
  /// Ends a day: shows and clicks of every row decay, rows of a small score and those not seen for long are deleted,
  /// and the others are unseen for a day more, until the next push. Ends the RowBatches. Wants no other call at the
  /// same time; up to `threads` parts of the table are done at once. The same rows are left whatever their number.
  /// kUnavailable when there is no memory for the index; the table is to be thrown away then.
  virtual Result<ShrinkReport> Shrink(int threads) = 0;
  /// Tells that a save of kBase or kDelta is where it was to go: what its rows are worth counts from here for the next
  /// kDelta. As Shrink, it wants no other call meanwhile, and none between it and the save.
  virtual Status WasSaved(TableContent content) = 0;
  /// As SparseTable::Save, it wants no other call meanwhile.
  virtual Result<CountedRows> Count() const = 0;
  /// What its rows are; lives as long as the table.
  virtual const CtrRows& policy() const = 0;
};

/// The table as such a one; null when it has no accessor, or its class cannot delete rows.
inline CountedTable* AsCounted(SparseTable* table) { return dynamic_cast<CountedTable*>(table); }
inline const CountedTable* AsCounted(const SparseTable* table) { return dynamic_cast<const CountedTable*>(table); }

}  // namespace millrace
