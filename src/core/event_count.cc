#include "core/event_count.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <limits>

namespace millrace {
namespace {

long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* most = nullptr) {
  static_assert(sizeof(word) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  return ::syscall(SYS_futex, &word, operation, value, most, nullptr, 0);
}

}  // namespace

void EventCount::Wait(uint32_t ticket) {
  while (epoch_.load(std::memory_order_seq_cst) == ticket) (void)Futex(epoch_, FUTEX_WAIT_PRIVATE, ticket);
  Cancel();
}

void EventCount::WaitAtMost(uint32_t ticket, std::chrono::milliseconds most) {
  // A single sleep: a signal can end it early, and callers with short waits then check for signals.
  const timespec time{static_cast<time_t>(most.count() / 1000), static_cast<long>(most.count() % 1000 * 1000000)};
  if (epoch_.load(std::memory_order_seq_cst) == ticket) (void)Futex(epoch_, FUTEX_WAIT_PRIVATE, ticket, &time);
  Cancel();
}

void EventCount::NotifyAll() {
  if (Advance()) Wake(std::numeric_limits<int>::max());
}

void EventCount::Wake(int most) { (void)Futex(epoch_, FUTEX_WAKE_PRIVATE, static_cast<uint32_t>(most)); }

}  // namespace millrace
