#include "table/key_index.h"

#include <algorithm>
#include <bit>

#include "table/virtual_shards.h"

namespace millrace {

namespace {

size_t CapacityFor(size_t keys) { return std::bit_ceil(keys + keys * 2 / 3 + 16); }

}  // namespace

KeyIndexShard::KeyIndexShard(size_t expected_keys) : cells_(new KeyCells(CapacityFor(expected_keys))) {}

size_t KeyIndexShard::BytesFor(size_t expected_keys) { return KeyCells::BytesFor(CapacityFor(expected_keys)); }

bool KeyIndexShard::AddNew(std::span<const uint64_t> keys, const uint64_t* hashes, float* const* rows,
                           Reclaimer& reclaimer) {
  const std::lock_guard lock(mutex_);
  KeyCells* cells = cells_.load(std::memory_order_relaxed);
  if ((size_ + keys.size()) * 5 > cells->capacity() * 3) {
    cells = Grow(std::max(2 * cells->capacity(), CapacityFor(size_ + keys.size())), reclaimer);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (cells->Find(keys[i], hashes[i]) != nullptr) return false;
    cells->Add(keys[i], hashes[i], rows[i]);
    ++size_;
  }
  return true;
}

void KeyIndexShard::Reserve(size_t keys, Reclaimer& reclaimer) {
  const std::lock_guard lock(mutex_);
  const size_t capacity = CapacityFor(size_ + keys);
  if (capacity > cells_.load(std::memory_order_relaxed)->capacity()) Grow(capacity, reclaimer);
}

void KeyIndexShard::Remove(const std::vector<float*>& rows, Reclaimer& reclaimer) {
  KeyCells* old = cells_.load(std::memory_order_relaxed);
  auto fewer = std::make_unique<KeyCells>(CapacityFor(size_ - rows.size()));
  size_t next = 0;  // in `rows`, which are in cell order
  old->ForEach([&](uint64_t key, float* row) {
    if (next < rows.size() && rows[next] == row) {
      ++next;
    } else {
      fewer->Add(key, HashKey(key), row);
    }
  });
  size_ -= rows.size();
  cells_.store(fewer.release(), std::memory_order_release);
  reclaimer.Retire(std::unique_ptr<KeyCells>(old));
}

KeyCells* KeyIndexShard::Grow(size_t capacity, Reclaimer& reclaimer) {
  KeyCells* old = cells_.load(std::memory_order_relaxed);
  auto* grown = new KeyCells(capacity);
  old->ForEach([grown](uint64_t key, float* row) { grown->Add(key, HashKey(key), row); });
  cells_.store(grown, std::memory_order_release);
  reclaimer.Retire(std::unique_ptr<KeyCells>(old));
  return grown;
}

}  // namespace millrace
