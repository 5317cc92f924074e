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

/// Counts values that a model was not trained on in the rows it scores, per slot: ids without a row in a growing table,
/// ids beyond a matrix, words outside a vocabulary. Also counts rows without a value.
///
/// Checks the first kAllLines lines of each file, and a hash-selected sample of the others, so the counts do not depend
/// on the number of readers. One thread; with `is_warm`, only Create allocates. Reads tables, which no thread may train
/// meanwhile. Functions fail like SparseTable::Pull.
class SlotWatch {
 public:
  static constexpr uint64_t kAllLines = 1024;
  static constexpr uint64_t kEvery = 32;  ///< sampling interval of later lines

  SlotWatch() = default;
  /// Watches the slots of `schema` that operators of `executable` read. `root` contains their tables and matrices and
  /// must outlive the watch. `is_warm`: pulls once to allocate buffers.
  static Result<SlotWatch> Create(const Executable& executable, const DataFeedDesc& desc, const SlotSchema& schema,
                                  const Scope& root, bool is_warm);

  /// Samples the rows of a batch. Rows without an origin are numbered from the first seen by this watch.
  Status Look(const SlotBatch& batch);
  /// Adds the counts since the last call.
  Status AddTo(SlotShares* shares);
  /// Rows sampled since then.
  int64_t rows_looked() const { return rows_looked_; }

 private:
  struct Slot {
    std::string name;
    SlotId id = 0;
    bool has_ids = false;
    bool has_offsets = false;
    size_t width = 0;                       ///< for a dense slot
    int table = -1;                         ///< index in tables_
    uint64_t salt = 0;                      ///< salt of the lookup
    int64_t padding = -1;                   ///< an id without a row
    uint64_t oov_buckets = 0;               ///< smaller ids are values outside the vocabulary
    std::vector<uint64_t> oov_hashes = {};  ///< represent these ids, in order; empty: ids are unchanged
    uint64_t vocabulary = 0;                ///< rows of a matrix; 0: none, or larger ids are undefined
    SlotShare share;

    bool IsOutsideVocabulary(uint64_t value) const;
  };
  /// Keys collected for one lookup.
  struct Table {
    SparseTable* table = nullptr;
    std::vector<uint64_t> keys;
    std::vector<uint32_t> slots;    ///< by key: index in slots_
    std::vector<uint32_t> weights;  ///< by key: number of rows its row represents
    RowBatch rows;
  };
  static constexpr size_t kKeys = 512;

  /// Finds the properties of slots with a vocabulary.
  static void FindVocabularies(const DataFeedDesc& desc, std::vector<Slot>* slots);
  /// Finds the table or matrix of each slot.
  static void FindLookups(const Executable& executable, const Scope& root, std::vector<Table>* tables,
                          std::vector<Slot>* slots);
  Status LookAtIds(std::span<const uint64_t> ids, uint32_t weight, size_t slot);
  Status LookUp(Table* table);

  std::vector<Slot> slots_;
  std::vector<Table> tables_;
  uint64_t rows_ = 0;  ///< rows without an origin
  int64_t rows_looked_ = 0;
};

}  // namespace millrace
