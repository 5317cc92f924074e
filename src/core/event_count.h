#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace millrace {

/// Lets threads sleep until a condition that others change without a lock may hold. Building block of Channel.
///
/// A waiter registers (Prepare), checks its condition again, then waits. A notifier changes the condition, then calls
/// Notify, which costs one atomic operation without waiters. Thread-safe.
class EventCount {
 public:
  /// Registers a waiter and returns the ticket for Wait. Every Prepare must be followed by Wait or Cancel.
  uint32_t Prepare() {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    return epoch_.load(std::memory_order_seq_cst);
  }
  void Cancel() { waiters_.fetch_sub(1, std::memory_order_seq_cst); }
  /// Sleeps until a Notify after the Prepare. Sleeps immediately, because std::atomic's wait first yields the CPU a few
  /// times, and on a busy machine each yield costs milliseconds.
  void Wait(uint32_t ticket);
  /// The same with a timeout; a signal can end it earlier.
  void WaitAtMost(uint32_t ticket, std::chrono::milliseconds most);
  /// Wakes one waiter, or all.
  void NotifyOne() {
    if (Advance()) Wake(1);
  }
  void NotifyAll();

 private:
  bool Advance() {
    // A read-modify-write, not a load: it orders this thread's change of the condition before reading the waiter count.
    if (waiters_.fetch_add(0, std::memory_order_seq_cst) == 0) return false;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    return true;
  }
  void Wake(int most);

  std::atomic<uint32_t> epoch_{0};  ///< the word on which waiters sleep
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace millrace
