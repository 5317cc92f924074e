#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"

namespace millrace {

class SparseTable;

/// A table's private data in a RowBatch, kept until gradients come back. Only for table classes.
struct RowPlaces {
  /// Addresses of the weights, in the table's memory or in `values`, followed by a null pointer.
  std::vector<float*> rows;
  /// The key of each row, for tables that look rows up again because they are stored elsewhere. Otherwise empty.
  std::vector<uint64_t> keys;
  std::vector<float> values;      ///< weights stored in this object
  std::shared_ptr<void> origin;   ///< such a table's data for exactly these keys; or null
  std::vector<uint32_t> missing;  ///< positions of keys without a row
};

/// Rows for some keys, returned by a table (SparseTable::Pull): used to read weights and to push gradients
/// (SparseTable::Push).
///
/// Refers to its table, which must outlive it. It contains pointers for a table in this process, and keys and received
/// values for a table stored elsewhere. Used by one thread; buffers keep their capacity.
///
/// A gradient has a separate handle, taken from that of the lookup, which can only be pushed.
class RowBatch {
 public:
  RowBatch() = default;
  RowBatch(RowBatch&&) = default;
  RowBatch& operator=(RowBatch&&) = default;

  /// Null if the rows belong to no table or to an unknown one.
  const SparseTable* table() const { return table_; }
  size_t size() const { return size_; }
  /// Addresses of each row's weights, valid until this object changes; empty in a gradient's handle.
  /// weights().data()[size()] is a null pointer, for ids without a row.
  std::span<const float* const> weights() const {
    return {places_.rows.data(), places_.rows.size() > size_ ? size_ : 0};
  }
  /// Positions of keys without a row, which show initial values (PullMode::kReadOnly).
  std::span<const uint32_t> missing() const { return places_.missing; }

  /// Removes all rows; the next ones belong to `table`, or to none if null.
  void Start(const SparseTable* table);
  /// Shows rows of a matrix of `width` columns, without a table.
  void ShowMatrix(std::span<const uint64_t> rows, float* matrix, size_t width);

  /// Takes the rows of `from` for another push. If `from` has missing rows, takes only the table.
  void Take(const RowBatch& from);
  /// Appends rows of a gradient's handle of the same table (see CheckSameTable): all, or the one at `i`.
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
  /// Fails with kInvalidConfig, naming both tables, if `other` has rows of another table.
  Status CheckSameTable(const RowBatch& other) const;

 private:
  friend class SparseTable;

  const SparseTable* table_ = nullptr;
  size_t size_ = 0;
  RowPlaces places_;
};

}  // namespace millrace
