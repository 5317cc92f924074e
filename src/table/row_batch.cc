#include "table/row_batch.h"

#include "table/sparse_table.h"

namespace millrace {

void RowBatch::Start(const SparseTable* table) {
  table_ = table;
  size_ = 0;
  places_.rows.clear();
  places_.keys.clear();
  places_.missing.clear();
  places_.origin.reset();
}

void RowBatch::ShowMatrix(std::span<const uint64_t> rows, float* matrix, size_t width) {
  table_ = nullptr;
  size_ = rows.size();
  places_.keys.clear();
  places_.origin.reset();
  places_.missing.clear();
  places_.rows.resize(rows.size() + 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    places_.rows[i] = matrix + rows[i] * width;
    __builtin_prefetch(places_.rows[i], 1, 3);  // the row is read after all others were found
  }
  places_.rows[rows.size()] = nullptr;
}

void RowBatch::Take(const RowBatch& from) {
  Start(from.table_);
  if (!from.places_.missing.empty()) return;
  Append(from);
  places_.origin = from.places_.origin;
}

void RowBatch::Append(const RowBatch& from) {
  size_ += from.size_;
  places_.origin.reset();
  const RowPlaces& places = from.places_;
  if (places.keys.empty()) {
    const auto end = places.rows.begin() + static_cast<ptrdiff_t>(from.size_);
    places_.rows.insert(places_.rows.end(), places.rows.begin(), end);
  } else {
    places_.keys.insert(places_.keys.end(), places.keys.begin(), places.keys.end());
  }
}

Status RowBatch::CheckSameTable(const RowBatch& other) const {
  if (table_ == other.table_ || table_ == nullptr || other.table_ == nullptr) return Status::Ok();
  return InvalidConfig("rows of table \"" + other.table_->shape().name + "\" are added to rows of table \"" +
                       table_->shape().name + "\": a gradient belongs to one table");
}

}  // namespace millrace
