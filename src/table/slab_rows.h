#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/huge_buffer.h"

namespace millrace {

/// Gives out rows of equal size that never move and live until they are freed, or as long as this object. Notes which
/// of them changed, for whoever marks them.
///
/// Rows lie side by side in slabs of 2 MiB, on huge pages but for the first one. Behind its rows a slab has a byte of
/// marks for each row, or where rows are of less than 16 bytes for those within 16: a row's mark is found without a
/// look-up. Thread-safe.
class SlabRows {
 public:
  static constexpr size_t kMostFloats = (HugeBuffer::kHugePage - (HugeBuffer::kHugePage >> 4)) / sizeof(float);

  /// A row starts at a multiple of 16 bytes, or of its own size when that is 4 or 8 bytes. It has at most
  /// kMostFloats.
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
      visit(std::span<const float>(begin, GivenOut(slab) * stride_));
    }
  }

  /// Marks a row that was given out; false: it is marked already.
  bool Mark(const float* row) const {
    std::atomic_ref<uint8_t> mark(MarkOf(row));
    // A row that is marked already leaves the line with other threads.
    if (mark.load(std::memory_order_relaxed) != 0) return false;
    mark.store(1, std::memory_order_relaxed);
    return true;
  }
  bool IsMarked(const float* row) const {
    return std::atomic_ref<uint8_t>(MarkOf(row)).load(std::memory_order_relaxed) != 0;
  }
  /// Takes all marks away. While nobody marks.
  void ClearMarks();
  /// How many rows are marked; of rows smaller than 16 bytes at most so many. While nobody marks.
  size_t CountMarked() const;

 private:
  static constexpr size_t kSlabBytes = HugeBuffer::kHugePage;

  uint8_t& MarkOf(const float* row) const {
    const auto address = reinterpret_cast<uintptr_t>(row);
    const uintptr_t slab = address & ~(uintptr_t{kSlabBytes} - 1);
    return reinterpret_cast<uint8_t*>(slab + row_bytes_)[(address - slab) >> mark_shift_];
  }
  /// Those of the rows that a slab gave out.
  std::span<uint8_t> MarksOf(const HugeBuffer& slab) const;
  size_t RowsOfSlab() const { return row_bytes_ / (stride_ * sizeof(float)); }
  size_t GivenOut(const HugeBuffer& slab) const { return RowsOfSlab() - (&slab == &slabs_.back() ? left_ : 0); }
  float* Take();

  const size_t stride_;     // floats from row to row
  const int mark_shift_;    // a mark is for 2 to this bytes, no more than a row has
  const size_t row_bytes_;  // of a slab; its marks lie behind
  mutable std::mutex mutex_;
  std::vector<HugeBuffer> slabs_;
  float* next_ = nullptr;
  size_t left_ = 0;  // rows in the newest slab
  std::vector<float*> free_;
};

}  // namespace millrace
