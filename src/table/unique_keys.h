#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/hash.h"

namespace millrace {

/// Numbers the distinct keys of a batch 0, 1, 2, ... in the order in which they first come.
///
/// Starting anew costs nothing: cells carry the number of the batch that filled them. Memory follows the largest batch
/// and is kept. One thread.
class UniqueKeys {
 public:
  /// Forgets all keys and makes room for up to `most` distinct ones.
  void Start(size_t most) {
    const size_t capacity = std::bit_ceil(2 * most + 16);
    if (cells_.size() < capacity) {
      cells_.assign(capacity, {});
      stamp_ = 0;
    }
    // A small batch after a large one shall not touch a large table.
    mask_ = capacity - 1;
    if (++stamp_ == 0) {
      cells_.assign(cells_.size(), {});
      stamp_ = 1;
    }
  }

  /// The number of `key`. `keys` holds those numbered so far; a new one is appended.
  uint32_t Number(uint64_t key, std::vector<uint64_t>& keys) {
    for (size_t i = (key * 0x9E3779B97F4A7C15ULL >> 32) & mask_;; i = (i + 1) & mask_) {
      Cell& cell = cells_[i];
      if (cell.stamp != stamp_) {
        cell = {stamp_, static_cast<uint32_t>(keys.size())};
        keys.push_back(key);
        return cell.number;
      }
      if (keys[cell.number] == key) return cell.number;
    }
  }

 private:
  struct Cell {
    uint32_t stamp = 0;
    uint32_t number = 0;
  };
  std::vector<Cell> cells_;
  size_t mask_ = 0;
  uint32_t stamp_ = 0;
};

}  // namespace millrace
