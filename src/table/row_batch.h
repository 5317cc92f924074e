#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"

namespace millrace {

class SparseTable;

/// What a table puts into a RowBatch, and finds there when gradients come back; for classes of tables alone.
struct RowPlaces {
  /// Where the weights of each row are, in the table's memory or in `values`; then a null pointer.
  std::vector<float*> rows;
  /// One a row, of a table that finds them by key again: for tables that lie elsewhere. Otherwise empty.
  std::vector<uint64_t> keys;
  std::vector<float> values;      ///< weights that this object has itself
  std::shared_ptr<void> origin;   ///< what such a table knows of these keys, all of them and no others; or null
  std::vector<uint32_t> missing;  ///< positions of rows that the table does not have
};

/// The rows of some keys, as a table gave them out (SparseTable::Pull): to read their weights, and to send the
/// gradients back (SparseTable::Push).
///
/// It knows its table, which must outlive it, and owns what it refers to: a table in this process keeps pointers in it,
/// one that lies elsewhere keys, and the values that came. One thread's; buffers keep their capacity.
///
/// A gradient has a handle of its own, taken from that of the lookup, which is for a Push alone.
class RowBatch {
 public:
  RowBatch() = default;
  RowBatch(RowBatch&&) = default;
  RowBatch& operator=(RowBatch&&) = default;

  /// Null where the rows are of no table, or nobody knows of which.
  const SparseTable* table() const { return table_; }
  size_t size() const { return size_; }
  /// Where to read the weights of each row, until the next call that changes this object; empty in a gradient's handle.
  /// weights().data()[size()] is there, too, and null: what ids without a row are read from.
  std::span<const float* const> weights() const {
    return {places_.rows.data(), places_.rows.size() > size_ ? size_ : 0};
  }
  /// Positions of keys without a row, which show what one would start with (PullMode::kReadOnly).
  std::span<const uint32_t> missing() const { return places_.missing; }

  /// Forgets all rows; those to come are of `table`, or null.
  void Start(const SparseTable* table);
  /// Shows rows of a matrix of `width` columns, of no table.
  void ShowMatrix(std::span<const uint64_t> rows, float* matrix, size_t width);

  /// Starts with the rows of `from`, so that they can be pushed to once more. Of a batch with missing rows the table
  /// alone is known then.
  void Take(const RowBatch& from);
  /// Adds rows of a gradient's handle of the same table, which CheckSameTable tells: all, or the one at `i`.
  void Append(const RowBatch& from);
  void Append(const RowBatch& from, size_t i) {
    ++size_;
    places_.origin.reset();
    if (from.places_.keys.empty()) {
      places_.rows.push_back(from.places_.rows[i]);
    } else {
      places_.keys.push_back(from.places_.keys[i]);
    }
  }
  /// kInvalidConfig, with the names of both tables, when `other` has rows of another one.
  Status CheckSameTable(const RowBatch& other) const;

 private:
  friend class SparseTable;

  const SparseTable* table_ = nullptr;
  size_t size_ = 0;
  RowPlaces places_;
};

}  // namespace millrace
