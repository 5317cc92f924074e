#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/status.h"
#include "reader/lod_tensor.h"

namespace millrace {

/// Threads that read ahead: they fill one bounded buffer with items, and the reader that owns them takes them out.
///
/// Threads start with the first Next. The end of all threads is the end of the items; the first failure of any ends
/// them all, and is seen after the items that were in the buffer before it. Items are taken out many at a time, and the
/// buffers of those that were used go back to the threads likewise: an item costs a thread one lock that is mostly
/// free. Work is called by the threads, Push by Work, the rest by the owner's thread.
class Prefetcher {
 public:
  using Item = std::vector<LoDTensor>;
  /// Pushes items until its input ends (ok), or a Push or its input fails; `thread` counts from 0.
  using Work = std::function<Status(int thread, const std::stop_token& stop)>;

  /// `capacity` items wait in the buffer at most; each thread has one more in its hands.
  Prefetcher(int threads, size_t capacity, Work work);
  /// Stops and joins the threads. They end at the next Push or read, which takes less than a second.
  ~Prefetcher() { Stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Puts the item into the buffer, waiting for room, and an older item with its buffers in its place.
  Status Push(Item* item, const std::stop_token& stop);
  /// The next item; false at the end. A caller that takes `together` of them before it does anything else is not woken
  /// for each, but for all of them, or as many as half the buffer holds.
  Result<bool> Next(Item* out, size_t together, const std::stop_token& stop);
  /// Stops and joins the threads and drops what is in the buffer; the next Next starts new ones.
  void Stop();

 private:
  /// kUnavailable when the system has no room for the threads; none runs then.
  Status Start();
  void Run(int thread, const std::stop_token& stop);
  /// Waits for items and moves them to taken_; none at the end.
  Status Take(size_t together, const std::stop_token& stop);

  const int thread_count_;
  const size_t capacity_;
  const size_t at_once_;  ///< so many items are taken out at most
  const Work work_;

  std::mutex mutex_;
  std::condition_variable_any has_items_;
  std::condition_variable_any has_room_;
  std::vector<Item> items_;  ///< the buffer
  size_t room_;              ///< items_ holds so many at most, while the owner has the rest of `capacity_`
  size_t wanted_ = 0;        ///< the owner waits for so many; 0: it does not wait
  int waiting_ = 0;          ///< threads that wait for room
  std::vector<Item> used_;   ///< what threads read into
  int running_ = 0;          ///< threads
  bool is_closed_ = false;   ///< nothing more is pushed
  Status failure_;

  // The owner's own.
  std::vector<Item> taken_;  ///< of which the first next_ were handed on
  size_t next_ = 0;
  std::vector<Item> returned_;  ///< on their way to used_
  std::vector<std::jthread> threads_;
};

}  // namespace millrace
