#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batch/slot_batch.h"
#include "core/status.h"
#include "data_feed.pb.h"
#include "datafeed/value_names.h"
#include "runtime/executable.h"
#include "runtime/scope.h"
#include "table/sparse_table.h"

namespace millrace {

/// Counts how many values of each slot a model was never trained on, of rows that it scores: ids without a row in a
/// table that grows, ids beyond a matrix, words beside a vocabulary; and how many rows of a slot have no value.
///
/// Looks at the first kAllLines lines of each file, and of the others at those that their number's hash chooses, so
/// that any number of readers comes to the same counts. One thread; with `is_warm` it allocates nothing but where it is
/// made. Tables are read, and may be trained by nobody meanwhile.
class SlotWatch {
 public:
  static constexpr uint64_t kAllLines = 1024;
  static constexpr uint64_t kEvery = 32;  ///< of the lines behind them

  SlotWatch() = default;
  /// Of the slots of `schema` that operators of `executable` read. `root` has its tables and matrices, and outlives the
  /// watch. `is_warm`: pulls once, so that its buffers are there.
  static Result<SlotWatch> Create(const Executable& executable, const DataFeedDesc& desc, const SlotSchema& schema,
                                  const Scope& root, bool is_warm);

  /// Rows without an origin count from the first one that this watch saw.
  Status Look(const SlotBatch& batch);
  /// Adds what was seen since the last call.
  Status AddTo(SlotShares* shares);
  /// Rows that were looked at since then.
  int64_t rows_looked() const { return rows_looked_; }

 private:
  struct Slot {
    std::string name;
    SlotId id = 0;
    bool has_ids = false;
    bool has_offsets = false;
    size_t width = 0;                       ///< of a dense slot
    int table = -1;                         ///< of tables_
    uint64_t salt = 0;                      ///< of the lookup
    int64_t padding = -1;                   ///< an id that has no row
    uint64_t oov_buckets = 0;               ///< ids below are of values outside of its vocabulary
    std::vector<uint64_t> oov_hashes = {};  ///< which stand for these ids, in order; empty: they stay as they are
    uint64_t vocabulary = 0;                ///< rows of a matrix; 0: none, or what is beyond has no meaning
    SlotShare share;

    bool IsOutsideVocabulary(uint64_t value) const;
  };
  /// Keys that wait to be looked up together.
  struct Table {
    SparseTable* table = nullptr;
    std::vector<uint64_t> keys;
    std::vector<uint32_t> slots;    ///< of each key: of slots_
    std::vector<uint32_t> weights;  ///< of each key: of how many rows its row is one
    RowBatch rows;
  };
  static constexpr size_t kKeys = 512;

  /// Finds what is known of slots with a vocabulary.
  static void FindVocabularies(const DataFeedDesc& desc, std::vector<Slot>* slots);
  /// Finds where a slot is looked up.
  static void FindLookups(const Executable& executable, const Scope& root, std::vector<Table>* tables,
                          std::vector<Slot>* slots);
  Status LookAtIds(std::span<const uint64_t> ids, uint32_t weight, size_t slot);
  Status LookUp(Table* table);

  std::vector<Slot> slots_;
  std::vector<Table> tables_;
  uint64_t rows_ = 0;  ///< without an origin
  int64_t rows_looked_ = 0;
};

}  // namespace millrace
