#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/channel.h"
#include "core/status.h"
#include "reader/lod_tensor.h"

namespace millrace {

/// An array in memory owned by somebody else, which a queue passes on without copying. `owner` keeps it alive; the last
/// reference can be released on any thread.
struct HeldArray {
  DType dtype = DType::kFloat32;
  Dims dims;
  const void* data = nullptr;  ///< dense, row-major
  bool is_writable = false;    ///< the receiver can write to it
  std::shared_ptr<const void> owner;
};

/// One push: an array per output. An empty one is the mark that EndPass puts between passes.
using HeldArrays = std::vector<HeldArray>;

/// A blocking queue of fixed capacity between a producer of arrays (Python) and a reader. First in, first out per
/// producer; each push is delivered once. A mark (EndPass) ends a pass for the consumer; Close ends the queue until
/// Reopen.
///
/// Thread-safe for any number of producers and consumers. Only its holder creates it.
class PyArrayFeedQueue {
 public:
  PyArrayFeedQueue(const PyArrayFeedQueue&) = delete;
  PyArrayFeedQueue(PyArrayFeedQueue&&) = delete;
  PyArrayFeedQueue& operator=(const PyArrayFeedQueue&) = delete;
  PyArrayFeedQueue& operator=(PyArrayFeedQueue&&) = delete;

  /// Fails with kInvalidConfig, naming the array that does not match shapes().
  Status Check(const HeldArrays& arrays) const;
  /// Waits while the queue is full. Fails like Check, with kCancelled after a stop request, and after Close with the
  /// given status or kCancelled.
  Status Push(HeldArrays arrays, const std::stop_token& stop);
  /// Takes `arrays` (already checked) and returns true; leaves them and returns false if the queue is full or closed.
  bool TryPush(HeldArrays& arrays) { return channel()->TryPush(arrays); }
  /// Appends the mark that ends a pass. Waits and fails like Push, except for Check.
  Status EndPass(const std::stop_token& stop) { return channel()->Push({}, stop); }
  /// Waits while the queue is empty and open; a mark is returned as no arrays. After Close, once the queue is empty,
  /// returns nullopt or fails with the status given to Close. Fails with kCancelled after a stop request.
  Result<std::optional<HeldArrays>> Pop(const std::stop_token& stop) { return channel()->Pop(stop); }
  /// Push and Pop for a thread that polls `stops` ten times per second instead of using a stop token. They fail like
  /// Push and Pop, and with kCancelled once `stops` returns true.
  Status PushUnless(const std::function<bool()>& stops, HeldArrays arrays);
  Result<std::optional<HeldArrays>> PopUnless(const std::function<bool()>& stops);
  std::optional<HeldArrays> TryPop() { return channel()->TryPop(); }
  /// Ends the queue for both sides: producers fail at once, consumers after the last array. Only the first call has an
  /// effect.
  void Close(Status why) { channel()->Close(std::move(why)); }
  /// Reopens the queue empty; threads waiting at the closed one leave. No-op while it is open.
  void Reopen();
  /// Number of reopenings.
  uint64_t openings() const;

  /// From 0 to capacity(); exact only without concurrent calls.
  size_t size() const;
  size_t capacity() const { return capacity_; }
  bool is_full() const { return size() >= capacity(); }
  bool is_empty() const { return size() == 0; }
  bool is_closed() const { return channel()->closed(); }
  /// The arrays of each push.
  const std::vector<TensorSpec>& shapes() const { return shapes_; }

 private:
  friend class PyArrayFeedQueueHolder;
  PyArrayFeedQueue(size_t capacity, std::vector<TensorSpec> shapes)
      : shapes_(std::move(shapes)), capacity_(capacity), channel_(std::make_shared<Channel<HeldArrays>>(capacity)) {}

  std::shared_ptr<Channel<HeldArrays>> channel() const {
    const std::lock_guard lock(mutex_);
    return channel_;
  }

  const std::vector<TensorSpec> shapes_;
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::shared_ptr<Channel<HeldArrays>> channel_;  ///< of the current opening; threads still using an earlier one keep
                                                  ///< it alive
  uint64_t openings_ = 0;
};

/// Holds the queue of a scope's variable; the queue itself needs a capacity and shapes to exist.
class PyArrayFeedQueueHolder {
 public:
  static constexpr size_t kMostCapacity = 1000000;

  PyArrayFeedQueueHolder() = default;

  /// Creates the queue with room for `capacity` pushes. Fails with kAlreadyExists on the second call, kInvalidConfig
  /// for a capacity of 0 or above kMostCapacity, or for missing or impossible shapes.
  Status InitOnce(size_t capacity, std::vector<TensorSpec> shapes);
  /// Null before InitOnce.
  const std::shared_ptr<PyArrayFeedQueue>& feeder() const { return feeder_; }

 private:
  std::shared_ptr<PyArrayFeedQueue> feeder_;
};

}  // namespace millrace
