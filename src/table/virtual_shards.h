#pragma once

#include <cstdint>

#include "core/hash.h"

namespace millrace {

/// Keys are spread over so many virtual shards, whatever the class of their table; saved tables say so, and it stays.
/// Whoever holds a part of a table (a file, a process) holds a range of them.
inline constexpr uint32_t kVirtualShards = 1024;

/// By its top bits the key's virtual shard, by its low ones where probing for the key starts.
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
