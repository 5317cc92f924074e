#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/channel.h"
#include "reader/lod_tensor.h"

namespace millrace {

/// Threads that read ahead: they fill one bounded buffer with items, and the reader that owns them takes them out.
///
/// Threads start with the first Next. The end of all threads is the end of the items; the first failure of any ends
/// them all, and is seen after the items that were in the buffer before it. Buffers of items that were used go back to
/// the threads. Work is called by the threads, Push by Work, the rest by the owner's thread.
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
  /// The next item; false at the end.
  Result<bool> Next(Item* out, const std::stop_token& stop);
  /// Stops and joins the threads and drops what is in the buffer; the next Next starts new ones.
  void Stop();

 private:
  void Start();
  void Run(int thread, const std::stop_token& stop);

  const int thread_count_;
  const size_t capacity_;
  const Work work_;
  std::unique_ptr<Channel<Item>> items_;
  std::unique_ptr<Channel<Item>> used_;
  std::atomic<int> running_{0};
  std::vector<std::jthread> threads_;
};

}  // namespace millrace
