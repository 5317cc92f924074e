#include "core/event_count.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>

namespace millrace {
namespace {

long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof(word) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  return ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

void EventCount::Wait(uint32_t ticket) {
  while (epoch_.load(std::memory_order_seq_cst) == ticket) (void)Futex(epoch_, FUTEX_WAIT_PRIVATE, ticket);
  Cancel();
}

void EventCount::NotifyAll() {
  if (Advance()) Wake(std::numeric_limits<int>::max());
}

void EventCount::Wake(int most) { (void)Futex(epoch_, FUTEX_WAKE_PRIVATE, static_cast<uint32_t>(most)); }

}  // namespace millrace
