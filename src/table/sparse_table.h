#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/status.h"
#include "kernels/row_locks.h"
#include "table/row_batch.h"
#include "table/virtual_shards.h"

namespace millrace {

class RowPolicy;
class TableDesc;

/// A program's variable of kind SPARSE_TABLE holds a std::unique_ptr<SparseTable>, and its attribute of this name the
/// table's TableDesc in text format. The startup program makes it by the operator create_sparse_table {Out}, which has
/// the same attribute. Gradients reach it by sparse_table_push {Table, Grad (SelectedRows), LearningRate}.
inline constexpr std::string_view kTableAttr = "table";

/// The key of an id in a table: the id itself, or for a lookup with a salt (TableDesc.key SLOT_AND_ID) a bijection of
/// ids for each salt.
inline uint64_t SlotKey(uint64_t id, uint64_t salt) { return salt == 0 ? id : Mix64(id ^ salt); }

/// What a pull does with keys that have no row yet.
enum class PullMode : uint8_t {
  kInsert,  ///< makes their rows: training
  /// Shows the values that a new row would start with, of a table with an accessor zeros, and makes nothing:
  /// evaluation, prediction.
  kReadOnly,
};

/// What an update needs to know of its batch.
struct PushContext {
  float lr = 0;               ///< learning rate of this step (FTRL's alpha)
  RowLocks* locks = nullptr;  ///< update mode ROW_LOCK; null in all others
  /// Examples whose mean loss the gradients are of; a table with an accessor makes them those of the sum.
  int examples = 1;
};

struct TableStats {
  int64_t rows = 0;
  int64_t bytes = 0;   ///< of rows and index
  int64_t pushes = 0;  ///< so far; of parts on several ranks the most
  /// Of them, those before NotesChanges::BeginChanges; -1: what changed since is not known.
  int64_t changes_since = -1;
};

/// How a table looks from outside; constant.
struct TableShape {
  std::string name;
  int dim = 0;         ///< weights in a row
  int row_floats = 0;  ///< weights and state
  /// Rows have an accessor: the first two columns of a push are no gradients but counts of shows and clicks, and its
  /// rules have rates of their own.
  bool counts = false;
};

/// What is saved of a table.
enum class TableContent : uint8_t {
  kAll,      ///< to go on training from
  kWeights,  ///< without the optimizer's state: to predict with, or to start another training from
  kBase,     ///< as kWeights, of a table with an accessor the rows that are worth it: Paddle's save of mode 2
  kDelta,    ///< as kBase, those of them alone that are worth more since kBase or kDelta had them: mode 1
  kChanges,  ///< as kAll, the rows alone that changed since NotesChanges::BeginChanges
};

/// What a load does with rows that the table has already.
enum class LoadMode : uint8_t {
  kNew,     ///< refuses them
  kBehind,  ///< passes them over: they were loaded from what was saved later
};

/// Rows that hold a NaN or an infinite value, among their weights or their state.
struct NonFiniteRows {
  int64_t rows = 0;
  uint64_t least_key = 0;  ///< of these rows
};

/// Rows of `dim` weights by 64-bit key (every key is allowed, 0 too), which grow as keys come. Where they lie is the
/// table's affair: everybody else reaches them through a RowBatch.
///
/// Pull and Push may be called by any number of threads at once, also while others insert, each with RowBatches of its
/// own. Save, Load and destruction want no other call at the same time, but several Saves, or Loads of rows of
/// different shards, may run side by side. Load and destruction end the RowBatches.
class SparseTable {
 public:
  virtual ~SparseTable() = default;

  /// Fills `out` with the row of each key. Best called with distinct keys. Allocates when rows are made or when `out`
  /// must grow; takes a lock only to make rows. After a failure `out` has no rows.
  virtual Status Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) = 0;
  /// Applies the optimizer once to each of `rows` with its gradient, rows.size() * dim floats. Each row must occur
  /// once: merge gradients of equal keys first. What CheckGave finds; kInternal for rows of a kReadOnly pull that the
  /// table does not have, and for another number of gradients.
  virtual Status Push(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) = 0;
  /// Writes the rows of `shards`, by virtual shard, then key: equal tables give equal bytes (docs/formats/table.md).
  virtual Status Save(ShardRange shards, TableContent content, std::ostream& out) const = 0;
  /// Reads what Save wrote, of it the rows of `shards`, or with none no more than how often it was pushed to, into this
  /// table, which must have none of these rows, unless `mode` says so, and be of the same dim and, but for weights
  /// alone, of the same optimizer, whose penalties may be others; beside weights alone the state is that of new rows. A
  /// damaged file is kBadData; after any failure the table is to be thrown away.
  virtual Status Load(ShardRange shards, std::istream& in, LoadMode mode) = 0;
  /// Looks at every row. As Save, it wants no other call meanwhile.
  virtual NonFiniteRows FindNonFinite() const = 0;
  virtual TableStats stats() const = 0;
  /// Whether Load would meet no row. A table of which other processes have parts looks at its own alone.
  virtual bool IsEmptyHere() const { return stats().rows == 0; }
  virtual const TableShape& shape() const = 0;

  /// kInvalidConfig, with the names of both, for rows of another table, and for rows of none.
  Status CheckGave(const RowBatch& rows) const;

 protected:
  /// What this table has put into `rows`.
  static const RowPlaces& PlacesOf(const RowBatch& rows) { return rows.places_; }
  /// Makes `out` one of `count` rows of this table, whose places are to be filled; the null pointer behind them is set.
  RowPlaces& StartRows(size_t count, RowBatch* out) const;
  /// What every Push begins with.
  Status CheckPush(const RowBatch& rows, std::span<const float> gradients) const;
};

/// Rows that changed since NotesChanges::BeginChanges.
struct ChangedRows {
  int64_t since = -1;  ///< pushes at that time; -1: whatever changed is not known, or rows were deleted since
  int64_t rows = 0;    ///< about how many, and no fewer
};

/// What a table can do besides that can save its changes alone.
class NotesChanges {
 public:
  virtual ~NotesChanges() = default;
  /// Notes from here on which rows change, and forgets what it noted before. As Save, it wants no other call meanwhile.
  virtual Status BeginChanges() = 0;
  /// The same for the rows that lie in this process, of a table of which other processes have parts.
  virtual void BeginChangesHere() = 0;
  /// Wants no other call meanwhile.
  virtual Result<ChangedRows> CountChanges() const = 0;
  /// About how many rows that lie in this process a save of changes has, or all of them where changes are not known.
  /// Any time, any thread; looks at no row.
  virtual int64_t AboutChangedHere() const = 0;
};

/// The same of any table: one that notes nothing does not know what changed.
Result<ChangedRows> CountChangesOf(const SparseTable& table);
void BeginChangesHereOf(SparseTable& table);
int64_t AboutChangedHereOf(const SparseTable& table);

/// What a table can do besides of which others train copies of rows.
class LendsRows {
 public:
  virtual ~LendsRows() = default;
  /// How its rows start and learn; lives as long as the table.
  virtual const RowPolicy& row_policy() const = 0;
  /// What copies of rows have learnt.
  struct Learnt {
    std::span<const float> moved;  ///< shape().row_floats a row; none: nothing is added
    std::span<const float> known;  ///< RowPolicy::SquaresOf each row that was copied; none for rules without
    float lr = 0;                  ///< the learning rate that moved them
  };
  /// Adds it to `rows`, which a Pull for training gave out (RowPolicy::AddAfterOthers). `now` becomes what they are
  /// then, shape().row_floats a row. Any thread, while others push.
  virtual void AddToRows(const RowBatch& rows, const Learnt& learnt, std::vector<float>* now) = 0;
};

/// What a table can do besides when pulls of it wait for somebody else.
class FetchesAhead {
 public:
  virtual ~FetchesAhead() = default;
  /// Asks for the rows of `keys` without waiting: a Pull of just these keys comes soon, for training, and sees them as
  /// they are now, or later, or as a copy that is not old has them. A fetch that no pull comes for is given up. Any
  /// thread.
  virtual Status Fetch(std::span<const uint64_t> keys) = 0;
};

}  // namespace millrace
