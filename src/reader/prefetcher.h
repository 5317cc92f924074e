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

/// Threads that read ahead: they fill a bounded buffer with items for the reader that owns them.
///
/// Threads start with the first Next. Items end when all threads have ended. The first failure of any thread ends all
/// and is returned after the items buffered before it. Items, and used buffers on their way back, are passed many at a
/// time, so an item costs a thread one mostly uncontended lock. Threads call Work, Work calls Push, and the owner's
/// thread calls the rest.
class Prefetcher {
 public:
  using Item = std::vector<LoDTensor>;
  /// Pushes items until its input ends (ok), or until a Push or its input fails; `thread` counts from 0.
  using Work = std::function<Status(int thread, const std::stop_token& stop)>;

  /// Up to `capacity` items are buffered; each thread has one more in progress.
  Prefetcher(int threads, size_t capacity, Work work);
  /// Stops and joins the threads. They end at the next Push or read, within a second.
  ~Prefetcher() { Stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Buffers the item, waiting for room, and replaces it by a used one whose memory can be reused. Fails with
  /// kCancelled after a stop request or when reading ahead has ended, else with the failure of another thread.
  Status Push(Item* item, const std::stop_token& stop);
  /// The next item; false at the end. A caller that needs `together` items before proceeding is woken once for all of
  /// them, or for half the buffer. Fails with the first failure of a thread, kCancelled after a stop request,
  /// kUnavailable if threads cannot start.
  Result<bool> Next(Item* out, size_t together, const std::stop_token& stop);
  /// Stops and joins the threads and clears the buffer; the next Next starts new ones.
  void Stop();

 private:
  /// Fails with kUnavailable if threads cannot start; none runs then.
  Status Start();
  void Run(int thread, const std::stop_token& stop);
  /// Waits for items and moves them to taken_; leaves it empty at the end.
  Status Take(size_t together, const std::stop_token& stop);

  const int thread_count_;
  const size_t capacity_;
  const size_t at_once_;  ///< maximum number of items taken at a time
  const Work work_;

  std::mutex mutex_;
  std::condition_variable_any has_items_;
  std::condition_variable_any has_room_;
  std::vector<Item> items_;  ///< the buffer
  size_t room_;              ///< current limit for items_; the owner has the rest of `capacity_`
  size_t wanted_ = 0;        ///< number of items the owner waits for; 0: it does not wait
  int waiting_ = 0;          ///< threads waiting for room
  std::vector<Item> used_;   ///< items to reuse
  int running_ = 0;          ///< threads
  bool is_closed_ = false;   ///< no more pushes
  Status failure_;

  // Used only by the owner.
  std::vector<Item> taken_;  ///< the first next_ are delivered
  size_t next_ = 0;
  std::vector<Item> returned_;  ///< to be moved to used_
  std::vector<std::jthread> threads_;
};

}  // namespace millrace
