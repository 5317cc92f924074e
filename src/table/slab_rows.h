#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "core/huge_buffer.h"

namespace millrace {

/// Gives out rows of equal size that never move and live until they are freed, or as long as this object.
///
/// Rows lie side by side in slabs: small ones at first, 2 MiB on huge pages soon. Thread-safe.
class SlabRows {
 public:
  /// A row starts at a multiple of 16 bytes, or of its own size when that is 4 or 8 bytes.
  explicit SlabRows(size_t floats_per_row);

  /// A zeroed row.
  float* Allocate();
  /// As many as `rows` has room for, with one lock.
  void Allocate(std::span<float*> rows);
  /// Takes rows back, to be given out again.
  void Free(std::span<float* const> rows);
  size_t bytes() const;
  /// Calls visit(floats) for each slab with the rows that it gave out, side by side, padding and freed ones, which are
  /// zero, included. While no row is written.
  template <class Visit>
  void ForEachSlab(Visit visit) const {
    const std::lock_guard lock(mutex_);
    for (const HugeBuffer& slab : slabs_) {
      const auto* begin = reinterpret_cast<const float*>(slab.data());
      const size_t rows = RowsOf(slab) - (&slab == &slabs_.back() ? left_ : 0);
      visit(std::span<const float>(begin, rows * stride_));
    }
  }

 private:
  size_t RowsOf(const HugeBuffer& slab) const { return slab.bytes() / (stride_ * sizeof(float)); }
  float* Take();

  const size_t stride_;  // floats from row to row
  mutable std::mutex mutex_;
  std::vector<HugeBuffer> slabs_;
  size_t slab_bytes_;
  float* next_ = nullptr;
  size_t left_ = 0;  // rows in the newest slab
  std::vector<float*> free_;
};

}  // namespace millrace
