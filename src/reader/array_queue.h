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

/// Values in memory that somebody else made: what a queue passes on without copying. `owner` keeps them alive, and
/// what lets go of it last may do so on any thread.
struct HeldArray {
  DType dtype = DType::kFloat32;
  Dims dims;
  const void* data = nullptr;  ///< dense, row-major
  bool is_writable = false;    ///< whoever takes it may write there
  std::shared_ptr<const void> owner;
};

/// One push: an array for each output. One without any is the mark that EndPass puts between passes.
using HeldArrays = std::vector<HeldArray>;

/// A blocking queue of a fixed capacity between whoever makes arrays (Python) and a reader. First in, first out; those
/// of one producer in its order; each delivered once. A mark (EndPass) ends a pass for who pops; Close ends the queue
/// until Reopen.
///
/// Thread-safe, for any number of producers and consumers. Made by its holder alone.
class PyArrayFeedQueue {
 public:
  PyArrayFeedQueue(const PyArrayFeedQueue&) = delete;
  PyArrayFeedQueue(PyArrayFeedQueue&&) = delete;
  PyArrayFeedQueue& operator=(const PyArrayFeedQueue&) = delete;
  PyArrayFeedQueue& operator=(PyArrayFeedQueue&&) = delete;

  /// kInvalidConfig that says which array is not as shapes() has it.
  Status Check(const HeldArrays& arrays) const;
  /// Waits while the queue is full. What Check says; after Close what it was closed with, or kCancelled.
  Status Push(HeldArrays arrays, const std::stop_token& stop);
  /// Takes `arrays`, which Check found good, and returns true, or leaves them when the queue is full or closed.
  bool TryPush(HeldArrays& arrays) { return channel()->TryPush(arrays); }
  /// Puts the mark of a pass's end behind what was pushed. Waits and fails as Push does.
  Status EndPass(const std::stop_token& stop) { return channel()->Push({}, stop); }
  /// Waits while the queue is empty and open; a mark comes as no arrays. Nothing once it was closed and all was taken;
  /// the failure it was closed with, likewise.
  Result<std::optional<HeldArrays>> Pop(const std::stop_token& stop) { return channel()->Pop(stop); }
  /// Push and Pop of a thread that asks `stops` now and then, ten times a second; kCancelled once that is true.
  /// No arrays are the mark of a pass's end.
  Status PushUnless(const std::function<bool()>& stops, HeldArrays arrays);
  Result<std::optional<HeldArrays>> PopUnless(const std::function<bool()>& stops);
  std::optional<HeldArrays> TryPop() { return channel()->TryPop(); }
  /// Ends the queue for both sides: producers fail at once, consumers after the last array. Only the first counts.
  void Close(Status why) { channel()->Close(std::move(why)); }
  /// Opens it again, empty: who waits at the closed one has left, or leaves. Does nothing while it is open.
  void Reopen();
  /// How often Reopen opened it.
  uint64_t openings() const;

  /// From 0 to capacity(); exact while nobody pushes or pops.
  size_t size() const;
  size_t capacity() const { return capacity_; }
  bool is_full() const { return size() >= capacity(); }
  bool is_empty() const { return size() == 0; }
  bool is_closed() const { return channel()->closed(); }
  /// What each push holds.
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
  std::shared_ptr<Channel<HeldArrays>> channel_;  ///< of this opening; who still uses the one before keeps it
  uint64_t openings_ = 0;
};

/// Where a scope's variable keeps its queue, which cannot be made without a capacity and shapes.
class PyArrayFeedQueueHolder {
 public:
  static constexpr size_t kMostCapacity = 1000000;

  PyArrayFeedQueueHolder() = default;

  /// Makes the queue, with room for `capacity` pushes at once. kAlreadyExists the second time; kInvalidConfig for a
  /// capacity of 0 or above kMostCapacity, for no shapes, and for shapes that no array has.
  Status InitOnce(size_t capacity, std::vector<TensorSpec> shapes);
  /// Null before InitOnce.
  const std::shared_ptr<PyArrayFeedQueue>& feeder() const { return feeder_; }

 private:
  std::shared_ptr<PyArrayFeedQueue> feeder_;
};

}  // namespace millrace
