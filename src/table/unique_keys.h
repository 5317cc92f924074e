#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

/// Numbers the distinct keys of a batch 0, 1, 2, ... in order of first occurrence.
///
/// Restarting is free, because cells contain the round that filled them. Memory grows to the largest round and is kept.
/// One thread.
class UniqueKeys {
 public:
  /// Removes all keys and reserves room for up to `most` distinct ones. Number keys that cannot equal earlier ones in a
  /// separate round, which may then fit the L1 cache.
  void Start(size_t most) {
    const size_t capacity = std::bit_ceil(std::max<size_t>(2 * most, 16));
    if (cells_.size() <= capacity) {
      cells_.assign(capacity + 1, {});
      round_ = 0;
      spare_ = capacity;
    }
    // A small batch after a large one must not touch a large table.
    mask_ = capacity - 1;
    round_ += kRound;
    if (round_ > UINT64_MAX / 2) {
      cells_.assign(cells_.size(), {});
      round_ = kRound;
    }
  }

  /// The number of `key`. `keys` receives keys by number and needs room for one more; `*count` is the count of numbered
  /// keys in this and earlier rounds.
  uint32_t Number(uint64_t key, uint64_t* keys, uint32_t* count) {
    const size_t i = (key * 0x9E3779B97F4A7C15ULL >> 32) & mask_;
    const Cell cell = cells_[i];
    // Whether a key is new is unpredictable, so both cases run the same code without a branch: a known key writes into
    // an unused spare cell. All bits of `is_new` are equal; rounds stay below 2^63.
    const uint64_t is_new = -((cell.tag - round_) >> 63);
    if (((cell.key ^ key) & ~is_new) != 0) [[unlikely]]
      return Probe(i, key, keys, count);
    const auto number = static_cast<uint32_t>((cell.tag & ~is_new) | (*count & is_new));
    cells_[(i & is_new) | (spare_ & ~is_new)] = {key, round_ | number};
    keys[number] = key;
    *count += static_cast<uint32_t>(is_new & 1);
    return number;
  }

 private:
  static constexpr uint64_t kRound = uint64_t{1} << 32;

  struct Cell {
    uint64_t key = 0;
    uint64_t tag = 0;  ///< the round, a multiple of kRound, plus the key's number
  };

  /// The same, starting at the cell after `i`, which has another key.
  uint32_t Probe(size_t i, uint64_t key, uint64_t* keys, uint32_t* count) {
    for (;;) {
      i = (i + 1) & mask_;
      Cell& cell = cells_[i];
      if (cell.tag < round_) {
        cell = {key, round_ | *count};
        keys[*count] = key;
        return (*count)++;
      }
      if (cell.key == key) return static_cast<uint32_t>(cell.tag);
    }
  }

  std::vector<Cell> cells_;
  size_t spare_ = 0;
  size_t mask_ = 0;
  uint64_t round_ = 0;
};

}  // namespace millrace
