#pragma once

#include <cstdint>

#include "core/hash.h"

namespace millrace {

/// Number of virtual shards over which keys are distributed, for every table class. Saved tables depend on it, so it
/// must not change. A part of a table (a file, a process) is a range of them.
inline constexpr uint32_t kVirtualShards = 1024;

/// The top bits are the key's virtual shard; the low bits are where probing starts.
constexpr uint64_t HashKey(uint64_t key) { return Mix64(key + 0x9E3779B97F4A7C15ULL); }
constexpr uint32_t ShardOfHash(uint64_t hash) { return static_cast<uint32_t>(hash >> 54); }
constexpr uint32_t VirtualShardOf(uint64_t key) { return ShardOfHash(HashKey(key)); }
static_assert(ShardOfHash(~uint64_t{0}) == kVirtualShards - 1);

/// Virtual shards [begin, end).
struct ShardRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  constexpr uint32_t size() const { return end - begin; }
  constexpr bool Has(uint32_t shard) const { return shard >= begin && shard < end; }
  constexpr bool Meets(const ShardRange& other) const { return begin < other.end && other.begin < end; }
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

inline constexpr ShardRange kAllShards{0, kVirtualShards};

}  // namespace millrace
