#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace millrace {

/// One-byte spin locks for rows, selected by address: for tables and parameters (update mode ROW_LOCK, where readers
/// also lock), rows with counts, and copies of rows (ranks/row_copies.h).
///
/// Two rows can share a lock; a thread holds one lock at a time, so this cannot deadlock.
class RowLocks {
 public:
  void Lock(const void* row) {
    std::atomic<uint8_t>& byte = At(row);
    int spins = 0;
    while (byte.exchange(1, std::memory_order_acquire) != 0) {
      if (++spins == 64) {
        std::this_thread::yield();
        spins = 0;
      }
    }
  }
  void Unlock(const void* row) { At(row).store(0, std::memory_order_release); }

 private:
  static constexpr size_t kLocks = 1 << 16;
  std::atomic<uint8_t>& At(const void* row) {
    const auto address = reinterpret_cast<uintptr_t>(row);
    return bytes_[(address * 0x9E3779B97F4A7C15ULL >> 48) & (kLocks - 1)];
  }
  std::array<std::atomic<uint8_t>, kLocks> bytes_{};
};

/// Locks one row while alive.
class RowGuard {
 public:
  RowGuard(RowLocks& locks, const void* row) : locks_(locks), row_(row) { locks_.Lock(row_); }
  ~RowGuard() { locks_.Unlock(row_); }
  RowGuard(const RowGuard&) = delete;
  RowGuard& operator=(const RowGuard&) = delete;

 private:
  RowLocks& locks_;
  const void* row_;
};

}  // namespace millrace
