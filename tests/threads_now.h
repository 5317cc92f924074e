#pragma once

#include <chrono>
#include <filesystem>
#include <thread>

namespace millrace {

/// Threads of this process, as the kernel counts them.
inline int ThreadsNow() {
#ifdef __SANITIZE_THREAD__
  // The sanitizer's own thread starts with the first of ours and stays; it is to be there from the first count on.
  static const bool started = (std::thread([] {}).join(), true);
  static_cast<void>(started);
#endif
  int threads = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++threads;
  return threads;
}

/// The same once they are `expected`, or after a second. The kernel wakes who joins a thread a moment before it takes
/// the thread off its list.
inline int ThreadsOnce(int expected) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (ThreadsNow() != expected && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return ThreadsNow();
}

}  // namespace millrace
