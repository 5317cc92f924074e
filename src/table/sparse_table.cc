#include "table/sparse_table.h"

namespace millrace {

Status SparseTable::CheckOwns(const RowBatch& rows) const {
  if (rows.table() == this || (rows.table() == nullptr && rows.size() == 0)) return Status::Ok();
  const std::string theirs = rows.table() == nullptr ? "no table" : "table \"" + rows.table()->shape().name + "\"";
  return InvalidConfig("table \"" + shape().name + "\": a gradient for rows of " + theirs +
                       " is pushed to it: push it to the table that its lookup reads");
}

RowPlaces& SparseTable::StartRows(size_t count, RowBatch* out) const {
  RowPlaces& places = out->places_;
  out->table_ = this;
  out->size_ = count;
  places.keys.clear();
  places.missing.clear();
  places.origin.reset();
  places.rows.resize(count + 1);
  places.rows[count] = nullptr;
  return places;
}

Status SparseTable::CheckPush(const RowBatch& rows, std::span<const float> gradients) const {
  MR_TRY(CheckOwns(rows));
  const auto dim = static_cast<size_t>(shape().dim);
  if (gradients.size() != rows.size() * dim) {
    return Internal("table \"" + shape().name + "\": " + std::to_string(rows.size()) + " rows of " +
                    std::to_string(dim) + " pushed with " + std::to_string(gradients.size()) + " gradients");
  }
  if (rows.missing().empty()) return Status::Ok();
  return Internal("table \"" + shape().name + "\": " + std::to_string(rows.missing().size()) +
                  " of the rows that are pushed were shown without being made");
}

void ResetLocalChanges(SparseTable& table) {
  if (auto* const notes = dynamic_cast<ChangeTracking*>(&table); notes != nullptr) notes->BeginChangesHere();
}

Result<ChangedRows> CountChangesOf(const SparseTable& table) {
  const auto* const notes = dynamic_cast<const ChangeTracking*>(&table);
  return notes == nullptr ? ChangedRows{} : notes->CountChanges();
}

int64_t AboutChangedHereOf(const SparseTable& table) {
  const auto* const notes = dynamic_cast<const ChangeTracking*>(&table);
  return notes == nullptr ? table.stats().rows : notes->EstimateLocalChanges();
}

}  // namespace millrace
