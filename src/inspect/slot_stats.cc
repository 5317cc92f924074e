#include "inspect/slot_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "batch/slot_batch.h"

namespace millrace {
namespace {

uint64_t LengthBucket(uint64_t length) { return length <= 16 ? length : std::bit_ceil(length); }

void AddFloat(float value, SlotStats* stats) {
  if (!std::isfinite(value)) {
    ++stats->non_finite;
    return;
  }
  const int64_t finite = stats->values - stats->non_finite;
  stats->minimum = finite == 1 ? value : std::min<double>(stats->minimum, value);
  stats->maximum = finite == 1 ? value : std::max<double>(stats->maximum, value);
  stats->sum.Add(value);
  stats->squares.AddSquare(value);
}

}  // namespace

DatasetStats::DatasetStats(const SlotSchema& schema, std::string_view label, size_t exact_ids)
    : schema_(&schema), label_(schema.Find(label)) {
  for (int i = 0; i < schema.used_count(); ++i) slots_.emplace_back(exact_ids);
}

std::optional<double> DatasetStats::label_rate() const {
  if (label_ < 0 || rows_ == 0) return std::nullopt;
  return static_cast<double>(clicks_) / static_cast<double>(rows_);
}

void DatasetStats::Add(const SlotBatch& batch) {
  ReadClicks(batch);
  for (const SlotSpec& slot : schema_->used()) AddSlot(batch, slot);
  rows_ += batch.rows();
}

void DatasetStats::ReadClicks(const SlotBatch& batch) {
  const auto rows = static_cast<size_t>(batch.rows());
  clicked_.assign(rows, false);
  if (label_ < 0) return;
  const SlotSpec& slot = schema_->used()[static_cast<size_t>(label_)];
  for (size_t row = 0; row < rows; ++row) {
    const size_t at = slot.is_dense ? row * static_cast<size_t>(slot.width) : batch.offsets(label_)[row];
    if (!slot.is_dense && at == batch.offsets(label_)[row + 1]) continue;
    const bool is_id = slot.type == SlotType::kUint64;
    clicked_[row] = is_id ? batch.ids(label_)[at] > 0 : batch.floats(label_)[at] > 0;
    const bool is_plain =
        is_id ? batch.ids(label_)[at] <= 1 : batch.floats(label_)[at] == (clicked_[row] ? 1.0F : 0.0F);
    odd_labels_ += is_plain ? 0 : 1;
    clicks_ += clicked_[row] ? 1 : 0;
  }
}

void DatasetStats::AddSlot(const SlotBatch& batch, const SlotSpec& slot) {
  SlotStats& stats = slots_[static_cast<size_t>(slot.id)];
  for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) {
    const auto width = static_cast<size_t>(slot.width);
    const size_t begin = slot.is_dense ? row * width : batch.offsets(slot.id)[row];
    const size_t end = slot.is_dense ? begin + width : batch.offsets(slot.id)[row + 1];
    ++stats.lengths[LengthBucket(end - begin)];
    bool covered = false;
    for (size_t i = begin; i < end; ++i) {
      ++stats.values;
      const bool is_id = slot.type == SlotType::kUint64;
      const bool zero = is_id ? batch.ids(slot.id)[i] == 0 : batch.floats(slot.id)[i] == 0;
      stats.zeros += zero ? 1 : 0;
      // The fraction of ones is the label's rate, so a label of 0 counts as present.
      covered |= !zero || slot.id == label_;
      if (is_id) {
        stats.ids.Add(batch.ids(slot.id)[i], clicked_[row]);
      } else {
        AddFloat(batch.floats(slot.id)[i], &stats);
      }
    }
    stats.covered_rows += covered ? 1 : 0;
  }
}

}  // namespace millrace
