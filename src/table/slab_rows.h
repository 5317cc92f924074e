#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/huge_buffer.h"

namespace millrace {

/// Gives out rows of equal size that never move and live as long as this object.
///
/// Rows lie side by side in slabs: small ones at first, 2 MiB on huge pages soon. Thread-safe.
class SlabRows {
 public:
  /// A row starts at a multiple of 16 bytes, or of its own size when that is 4 or 8 bytes.
  explicit SlabRows(size_t floats_per_row);

  /// A zeroed row.
  float* Allocate();
  size_t bytes() const;

 private:
  const size_t stride_;  // floats from row to row
  mutable std::mutex mutex_;
  std::vector<HugeBuffer> slabs_;
  size_t slab_bytes_;
  float* next_ = nullptr;
  size_t left_ = 0;  // rows in the newest slab
};

}  // namespace millrace
