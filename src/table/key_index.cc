#include "table/key_index.h"

#include <bit>

#include "core/hash.h"

namespace millrace {

uint64_t HashKey(uint64_t key) { return Mix64(key + 0x9E3779B97F4A7C15ULL); }

namespace {

size_t CapacityFor(size_t keys) { return std::bit_ceil(keys + keys * 2 / 3 + 16); }

}  // namespace

KeyIndexShard::KeyIndexShard(size_t expected_keys) : cells_(new KeyCells(CapacityFor(expected_keys))) {}

size_t KeyIndexShard::BytesFor(size_t expected_keys) { return KeyCells::BytesFor(CapacityFor(expected_keys)); }

KeyCells* KeyIndexShard::Grow(KeyCells* old, Reclaimer& reclaimer) {
  auto* grown = new KeyCells(old->capacity() * 2);
  old->ForEach([grown](uint64_t key, float* row) { grown->Add(key, HashKey(key), row); });
  cells_.store(grown, std::memory_order_release);
  reclaimer.Retire(std::unique_ptr<KeyCells>(old));
  return grown;
}

}  // namespace millrace
