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

/// Attribute with a table's TableDesc in text format. A variable of kind SPARSE_TABLE holds a
/// std::unique_ptr<SparseTable> and has this attribute. The startup program creates it with the operator
/// create_sparse_table {Out}, which has the same attribute. Gradients reach it through sparse_table_push {Table, Grad
/// (SelectedRows), LearningRate}.
inline constexpr std::string_view kTableAttr = "table";

/// The key of an id in a table: the id, or for a lookup with a salt (TableDesc.key SLOT_AND_ID) a per-salt bijection of
/// ids.
inline uint64_t SlotKey(uint64_t id, uint64_t salt) { return salt == 0 ? id : Mix64(id ^ salt); }

/// How a pull treats keys without a row.
enum class PullMode : uint8_t {
  kInsert,  ///< creates their rows: training
  /// Shows the initial values of a new row (zeros with an accessor) without creating it: evaluation, prediction.
  kReadOnly,
};

/// The batch parameters of an update.
struct PushContext {
  float lr = 0;               ///< learning rate of this step (FTRL's alpha)
  RowLocks* locks = nullptr;  ///< update mode ROW_LOCK; null in all others
  /// Number of examples over which the loss was averaged; a table with an accessor rescales gradients to the sum.
  int examples = 1;
};

struct TableStats {
  int64_t rows = 0;
  int64_t bytes = 0;   ///< rows and index
  int64_t pushes = 0;  ///< total; with parts on several ranks, the maximum
  /// Pushes before ChangeTracking::BeginChanges; -1: the changes since are unknown.
  int64_t changes_since = -1;
};

/// Constant properties of a table.
struct TableShape {
  std::string name;
  int dim = 0;         ///< weights per row
  int row_floats = 0;  ///< weights and state
  /// Rows have an accessor: the first two columns of a push are counts of shows and clicks, and its rules have their
  /// own learning rates.
  bool counts = false;
};

/// The part of a table to save.
enum class TableContent : uint8_t {
  kAll,      ///< to resume training
  kWeights,  ///< without optimizer state: for prediction, or to start another training
  kBase,     ///< like kWeights; with an accessor, only rows of sufficient score: Paddle's save of mode 2
  kDelta,    ///< like kBase, only rows whose score grew enough since the last kBase or kDelta: mode 1
  kChanges,  ///< like kAll, only rows changed since ChangeTracking::BeginChanges
};

/// How a load treats rows that exist already.
enum class LoadMode : uint8_t {
  kNew,     ///< fails
  kBehind,  ///< skips them: they were loaded from a later save
};

/// Rows with a NaN or an infinite weight or state.
struct NonFiniteRows {
  int64_t rows = 0;
  uint64_t least_key = 0;  ///< smallest key among these rows
};

/// Rows of `dim` weights by 64-bit key; any key, including 0, is allowed, and rows are created on demand. The table
/// decides where they are stored; other code accesses them through a RowBatch.
///
/// Any number of threads can call Pull and Push concurrently, also during inserts, each with its own RowBatches. Save,
/// Load, FindNonFinite and destruction require that no other call runs, but several Saves, or Loads of different
/// shards, can run concurrently. Load and destruction invalidate the RowBatches. A table with rows in other processes
/// also fails if one of them cannot be reached.
class SparseTable {
 public:
  virtual ~SparseTable() = default;

  /// Fills `out` with the row of each key; best with distinct keys. Allocates to create rows or to grow `out`; locks
  /// only to create rows. Fails with kUnavailable without memory for a row; `out` is then empty.
  virtual Status Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) = 0;
  /// Applies the optimizer once per row with its gradient, rows.size() * dim floats. Rows must be distinct: merge
  /// gradients of equal keys first. Fails like CheckOwns, with kBadData for gradients the policy rejects, kInternal for
  /// rows that a kReadOnly pull did not find or a wrong number of gradients.
  virtual Status Push(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) = 0;
  /// Writes the rows of `shards` by virtual shard, then key, so equal tables give equal bytes (docs/formats/table.md).
  /// Fails with kIo if `out` cannot be written, kInternal for kChanges if the changes are unknown.
  virtual Status Save(ShardRange shards, TableContent content, std::ostream& out) const = 0;
  /// Loads the rows of `shards` from a saved table; an empty range loads only the push count. If only weights were
  /// saved, the state is that of new rows. Fails with kInvalidConfig unless dim and, except for weights only, the
  /// optimizer match (regularization can differ), kAlreadyExists if a row exists and `mode` is kNew, kBadData for a
  /// damaged file. After a failure the table must be discarded.
  virtual Status Load(ShardRange shards, std::istream& in, LoadMode mode) = 0;
  /// Checks every row.
  virtual NonFiniteRows FindNonFinite() const = 0;
  virtual TableStats stats() const = 0;
  /// Whether Load would find no row. A table with parts in other processes checks only its own.
  virtual bool IsEmptyHere() const { return stats().rows == 0; }
  virtual const TableShape& shape() const = 0;

  /// Fails with kInvalidConfig, naming both tables, for rows of another table or of none.
  Status CheckOwns(const RowBatch& rows) const;

 protected:
  /// This table's data in `rows`.
  static const RowPlaces& PlacesOf(const RowBatch& rows) { return rows.places_; }
  /// Prepares `out` for `count` rows of this table and returns the places to fill; sets the trailing null pointer.
  RowPlaces& StartRows(size_t count, RowBatch* out) const;
  /// Called at the start of every Push: fails like CheckOwns, kInternal for a wrong number of gradients or missing
  /// rows.
  Status CheckPush(const RowBatch& rows, std::span<const float> gradients) const;
};

/// Rows changed since ChangeTracking::BeginChanges.
struct ChangedRows {
  int64_t since = -1;  ///< pushes at that time; -1: unknown, or rows were deleted since
  int64_t rows = 0;    ///< an estimate, never too low
};

/// Optional interface of a table that can save only its changes. All functions except EstimateLocalChanges require that
/// no other call runs.
class ChangeTracking {
 public:
  virtual ~ChangeTracking() = default;
  /// Starts tracking changed rows, and forgets earlier changes. Fails only if rows in another process cannot be
  /// reached.
  virtual Status BeginChanges() = 0;
  /// The same for the rows in this process only.
  virtual void BeginChangesHere() = 0;
  /// Fails only if rows in another process cannot be reached.
  virtual Result<ChangedRows> CountChanges() const = 0;
  /// Estimates how many rows of this process a save of changes contains; all of them if changes are unknown. Any time,
  /// any thread; does not read rows.
  virtual int64_t EstimateLocalChanges() const = 0;
};

/// The same for any table; without this interface, changes are unknown. Fails like CountChanges.
Result<ChangedRows> CountChangesOf(const SparseTable& table);
void ResetLocalChanges(SparseTable& table);
int64_t AboutChangedHereOf(const SparseTable& table);

/// Optional interface of a table whose rows others train as copies.
class ReplicaSource {
 public:
  virtual ~ReplicaSource() = default;
  /// The policy of its rows; lives as long as the table.
  virtual const RowPolicy& row_policy() const = 0;
  /// Updates learned by copies of rows.
  struct Learnt {
    std::span<const float> moved;  ///< shape().row_floats per row; empty: nothing to add
    std::span<const float> known;  ///< RowPolicy::SquaresOf each row when it was copied; empty for rules without
                                   ///< squares
    float lr = 0;                  ///< the learning rate of these updates
  };
  /// Adds `learnt` to `rows`, which a Pull for training returned (RowPolicy::AddAfterOthers). `now` receives the
  /// result, shape().row_floats per row. Any thread, while others push.
  virtual void AddToRows(const RowBatch& rows, const Learnt& learnt, std::vector<float>* now) = 0;
};

/// Optional interface of a table whose pulls wait for other processes.
class Prefetchable {
 public:
  virtual ~Prefetchable() = default;
  /// Requests the rows of `keys` without waiting. A Pull of exactly these keys, for training, should follow soon; it
  /// sees the rows as of now or later, or as in a recent copy. Unused fetches are discarded. Any thread. Fails if rows
  /// in another process cannot be reached.
  virtual Status Fetch(std::span<const uint64_t> keys) = 0;
};

}  // namespace millrace
