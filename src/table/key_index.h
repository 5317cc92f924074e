#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/huge_buffer.h"

namespace millrace {

/// The cells of a shard at one capacity: open addressing with linear probing. A cell is free while its row is null, so
/// every key, including 0, is allowed.
class KeyCells {
 public:
  /// `capacity` is a power of two.
  explicit KeyCells(size_t capacity) : mask_(capacity - 1), memory_(BytesFor(capacity)) {}

  static size_t BytesFor(size_t capacity) { return capacity * sizeof(Cell); }
  size_t capacity() const { return mask_ + 1; }
  size_t bytes() const { return memory_.bytes(); }
  void Prefetch(uint64_t hash) const { __builtin_prefetch(cells() + (hash & mask_), 0, 3); }

  /// The row of a key, or null. Lock-free; a visible row is complete.
  float* Find(uint64_t key, uint64_t hash) const {
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Cell& cell = cells()[i];
      float* row = cell.row.load(std::memory_order_acquire);
      if (row == nullptr || cell.key == key) return row;
    }
  }
  /// Adds a new key; one thread at a time. A cell must be free.
  void Add(uint64_t key, uint64_t hash, float* row) {
    size_t i = hash & mask_;
    while (cells()[i].row.load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask_;
    cells()[i].key = key;
    cells()[i].row.store(row, std::memory_order_release);
  }
  /// Calls visit(key, row) for each row.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i <= mask_; ++i) {
      if (float* row = cells()[i].row.load(std::memory_order_acquire); row != nullptr) visit(cells()[i].key, row);
    }
  }

 private:
  // Zeroed memory is a valid free cell, and 16 bytes keep a cell within one cache line.
  struct Cell {
    uint64_t key;
    std::atomic<float*> row;
  };
  static_assert(sizeof(Cell) == 16 && std::atomic<float*>::is_always_lock_free);

  Cell* cells() const { return reinterpret_cast<Cell*>(memory_.data()); }

  size_t mask_;
  HugeBuffer memory_;
};

/// Keeps replaced cells until no reader can use them.
///
/// A reader is between Enter and Leave during one pull. Neither locks unless cells were retired.
class Reclaimer {
 public:
  void Enter() { readers_.fetch_add(1, std::memory_order_acq_rel); }
  void Leave() {
    if (!has_retired_.load(std::memory_order_relaxed)) {
      readers_.fetch_sub(1, std::memory_order_acq_rel);
      return;
    }
    const std::lock_guard lock(mutex_);
    // Readers that enter from now on see the cells that replaced the retired ones: those were published before the
    // retirement, which this lock orders before our decrement, which the new reader's increment follows.
    if (readers_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      retired_.clear();
      has_retired_.store(false, std::memory_order_relaxed);
    }
  }
  /// Called by a reader after publishing the replacement.
  void Retire(std::unique_ptr<KeyCells> cells) {
    const std::lock_guard lock(mutex_);
    retired_.push_back(std::move(cells));
    has_retired_.store(true, std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> readers_{0};
  std::atomic<bool> has_retired_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<KeyCells>> retired_;
};

/// Rows by key: lookups are lock-free, adding takes the shard's mutex, growing publishes new cells. Thread-safe.
class KeyIndexShard {
 public:
  explicit KeyIndexShard(size_t expected_keys);
  /// Memory allocated by the constructor.
  static size_t BytesFor(size_t expected_keys);
  ~KeyIndexShard() { delete cells_.load(std::memory_order_relaxed); }
  KeyIndexShard(const KeyIndexShard&) = delete;
  KeyIndexShard& operator=(const KeyIndexShard&) = delete;

  /// Requires that the caller is between Enter and Leave of `reclaimer`; this also holds for FindOrAdd.
  const KeyCells& cells() const { return *cells_.load(std::memory_order_acquire); }

  /// The row of a key; calls make_row() under the lock for a new key.
  template <class MakeRow>
  float* FindOrAdd(uint64_t key, uint64_t hash, Reclaimer& reclaimer, MakeRow make_row) {
    const std::lock_guard lock(mutex_);
    KeyCells* cells = cells_.load(std::memory_order_relaxed);
    if (float* row = cells->Find(key, hash); row != nullptr) return row;
    if ((size_ + 1) * 5 > cells->capacity() * 3) cells = Grow(2 * cells->capacity(), reclaimer);
    float* row = make_row();
    cells->Add(key, hash, row);
    ++size_;
    return row;
  }

  /// Adds keys with their rows under one lock; false, with some of them added, if one exists already.
  bool AddNew(std::span<const uint64_t> keys, const uint64_t* hashes, float* const* rows, Reclaimer& reclaimer);
  /// Reserves room for `keys` more keys.
  void Reserve(size_t keys, Reclaimer& reclaimer);

  /// Removes and returns the rows for which removes(row) is true. No lookup or insertion may run.
  template <class Removes>
  std::vector<float*> RemoveIf(Reclaimer& reclaimer, Removes removes) {
    const std::lock_guard lock(mutex_);
    const KeyCells& cells = *cells_.load(std::memory_order_relaxed);
    std::vector<float*> removed;
    cells.ForEach([&](uint64_t, float* row) {
      if (removes(row)) removed.push_back(row);
    });
    if (!removed.empty()) Remove(removed, reclaimer);
    return removed;
  }

  struct Stats {
    size_t keys;
    size_t bytes;
  };
  Stats stats() const {
    const std::lock_guard lock(mutex_);
    return {size_, cells_.load(std::memory_order_relaxed)->bytes()};
  }

 private:
  KeyCells* Grow(size_t capacity, Reclaimer& reclaimer);
  void Remove(const std::vector<float*>& rows, Reclaimer& reclaimer);

  mutable std::mutex mutex_;
  std::atomic<KeyCells*> cells_;  // owned
  size_t size_ = 0;
};

}  // namespace millrace
