#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/huge_buffer.h"

namespace millrace {

/// Allocates rows of equal size, which never move and live until freed or until this object ends. Tracks marks of
/// changed rows.
///
/// Rows are contiguous in slabs of 2 MiB, on huge pages except for the first. After its rows, a slab has one byte per
/// row for marks, or per 16 bytes for smaller rows, so finding a mark needs no lookup. Thread-safe.
class SlabRows {
 public:
  static constexpr size_t kMostFloats = (HugeBuffer::kHugePage - (HugeBuffer::kHugePage >> 4)) / sizeof(float);

  /// Rows are aligned to 16 bytes, or to their size if that is 4 or 8 bytes. A row has at most kMostFloats.
  explicit SlabRows(size_t floats_per_row);

  /// Returns a zeroed row.
  float* Allocate();
  /// Allocates a row for each element of `rows` under one lock.
  void Allocate(std::span<float*> rows);
  /// Frees rows for reuse.
  void Free(std::span<float* const> rows);
  size_t bytes() const;
  /// Calls visit(floats) with the allocated rows of each slab, including padding and freed rows, which are zero. No row
  /// may be written meanwhile.
  template <class Visit>
  void ForEachSlab(Visit visit) const {
    const std::lock_guard lock(mutex_);
    for (const HugeBuffer& slab : slabs_) {
      const auto* begin = reinterpret_cast<const float*>(slab.data());
      visit(std::span<const float>(begin, GivenOut(slab) * stride_));
    }
  }

  /// Marks an allocated row; false if it is marked already.
  bool Mark(const float* row) const {
    std::atomic_ref<uint8_t> mark(MarkOf(row));
    // Skipping the store leaves the cache line shared with other threads.
    if (mark.load(std::memory_order_relaxed) != 0) return false;
    mark.store(1, std::memory_order_relaxed);
    return true;
  }
  bool IsMarked(const float* row) const {
    return std::atomic_ref<uint8_t>(MarkOf(row)).load(std::memory_order_relaxed) != 0;
  }
  /// Clears all marks. No thread may mark meanwhile.
  void ClearMarks();
  /// Number of marked rows; for rows below 16 bytes an upper bound. No thread may mark meanwhile.
  size_t CountMarked() const;

 private:
  static constexpr size_t kSlabBytes = HugeBuffer::kHugePage;

  uint8_t& MarkOf(const float* row) const {
    const auto address = reinterpret_cast<uintptr_t>(row);
    const uintptr_t slab = address & ~(uintptr_t{kSlabBytes} - 1);
    return reinterpret_cast<uint8_t*>(slab + row_bytes_)[(address - slab) >> mark_shift_];
  }
  /// Marks of the rows allocated from a slab.
  std::span<uint8_t> MarksOf(const HugeBuffer& slab) const;
  size_t RowsOfSlab() const { return row_bytes_ / (stride_ * sizeof(float)); }
  size_t GivenOut(const HugeBuffer& slab) const { return RowsOfSlab() - (&slab == &slabs_.back() ? left_ : 0); }
  float* Take();

  const size_t stride_;     // floats between rows
  const int mark_shift_;    // a mark covers 2 to this bytes, at most one row
  const size_t row_bytes_;  // per slab; marks follow
  mutable std::mutex mutex_;
  std::vector<HugeBuffer> slabs_;
  float* next_ = nullptr;
  size_t left_ = 0;  // rows in the newest slab
  std::vector<float*> free_;
};

}  // namespace millrace
