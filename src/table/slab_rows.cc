#include "table/slab_rows.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr size_t kFirstSlabBytes = size_t{64} << 10;

size_t Stride(size_t floats) { return floats <= 2 ? floats : (floats + 3) / 4 * 4; }

}  // namespace

SlabRows::SlabRows(size_t floats_per_row)
    : stride_(Stride(floats_per_row)), slab_bytes_(std::max(kFirstSlabBytes, stride_ * sizeof(float))) {}

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
    const HugeBuffer& slab = slabs_.emplace_back(slab_bytes_);
    next_ = reinterpret_cast<float*>(slab.data());
    left_ = RowsOf(slab);
    slab_bytes_ = std::max(slab_bytes_, std::min(2 * slab_bytes_, HugeBuffer::kHugePage));
  }
  float* row = next_;
  next_ += stride_;
  --left_;
  return row;
}

size_t SlabRows::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const HugeBuffer& slab : slabs_) bytes += slab.bytes();
  return bytes;
}

}  // namespace millrace
