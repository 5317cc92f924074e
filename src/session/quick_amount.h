#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace millrace {

/// Remembers how much repeated work is over within a hundredth of a second, so that the caller can do it itself instead
/// of handing it to a thread that can be interrupted. Thread-safe.
class QuickAmount {
 public:
  bool Contains(int64_t amount) const { return amount <= most_.load(std::memory_order_relaxed); }
  void Note(int64_t amount, std::chrono::steady_clock::duration took) {
    constexpr std::chrono::milliseconds kQuick{10};
    const int64_t most = most_.load(std::memory_order_relaxed);
    most_.store(took <= kQuick ? std::max(most, amount) : std::min(most, amount - 1), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> most_{-1};  ///< the largest amount that was quick
};

}  // namespace millrace
