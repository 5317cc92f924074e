#include "table/slab_rows.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace millrace {
namespace {

size_t Stride(size_t floats) { return floats <= 2 ? floats : (floats + 3) / 4 * 4; }

constexpr int kLeastShift = 4;

}  // namespace

SlabRows::SlabRows(size_t floats_per_row)
    : stride_(Stride(floats_per_row)),
      mark_shift_(std::max(kLeastShift, static_cast<int>(std::bit_width(stride_ * sizeof(float))) - 1)),
      row_bytes_(kSlabBytes - (kSlabBytes >> mark_shift_)) {
  assert(RowsOfSlab() > 0);
}

float* SlabRows::Allocate() {
  const std::lock_guard lock(mutex_);
  return Take();
}

void SlabRows::Allocate(std::span<float*> rows) {
  const std::lock_guard lock(mutex_);
  for (float*& row : rows) row = Take();
}

void SlabRows::Free(std::span<float* const> rows) {
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), rows.begin(), rows.end());
  for (float* row : rows) std::fill_n(row, stride_, 0.0F);
}

float* SlabRows::Take() {
  if (!free_.empty()) {
    float* row = free_.back();
    free_.pop_back();
    return row;
  }
  if (left_ == 0) {
    // Small tables use few pages.
    const bool is_first = slabs_.empty();
    const HugeBuffer& slab =
        slabs_.emplace_back(kSlabBytes, is_first ? HugeBuffer::Pages::kSmall : HugeBuffer::Pages::kHuge);
    next_ = reinterpret_cast<float*>(slab.data());
    left_ = RowsOfSlab();
  }
  float* row = next_;
  next_ += stride_;
  --left_;
  return row;
}

size_t SlabRows::bytes() const {
  const std::lock_guard lock(mutex_);
  if (slabs_.size() == 1) return GivenOut(slabs_[0]) * stride_ * sizeof(float);
  return slabs_.size() * kSlabBytes;
}

std::span<uint8_t> SlabRows::MarksOf(const HugeBuffer& slab) const {
  const size_t bytes = GivenOut(slab) * stride_ * sizeof(float);
  const size_t marks = (bytes + (size_t{1} << mark_shift_) - 1) >> mark_shift_;
  return {reinterpret_cast<uint8_t*>(slab.data()) + row_bytes_, marks};
}

void SlabRows::ClearMarks() {
  const std::lock_guard lock(mutex_);
  for (const HugeBuffer& slab : slabs_) std::ranges::fill(MarksOf(slab), uint8_t{0});
}

size_t SlabRows::CountMarked() const {
  const std::lock_guard lock(mutex_);
  size_t marked = 0;
  for (const HugeBuffer& slab : slabs_) marked += static_cast<size_t>(std::ranges::count(MarksOf(slab), 1));
  const size_t rows_a_mark = std::max(size_t{1}, (size_t{1} << mark_shift_) / (stride_ * sizeof(float)));
  return marked * rows_a_mark;
}

}  // namespace millrace
