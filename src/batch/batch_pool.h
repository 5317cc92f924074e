#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "batch/slot_batch.h"
#include "core/channel.h"

namespace millrace {

class BatchPool;

/// Returns a batch to its pool.
struct BatchReturner {
  BatchPool* pool = nullptr;
  void operator()(SlotBatch* batch) const;
};

/// Owns a batch until it dies, then returns it to the pool. Null means "end of the pass".
using BatchPtr = std::unique_ptr<SlotBatch, BatchReturner>;

/// Recycles batches, so that a warm pass does not allocate any.
///
/// Thread-safe and lock-free. Must outlive every BatchPtr it returned.
class BatchPool {
 public:
  explicit BatchPool(const SlotSchema& schema) : schema_(&schema) {}

  /// An empty batch; creates one if none is free.
  BatchPtr Take();
  /// Number of batches created: the maximum in use at the same time.
  int made() const { return made_.load(std::memory_order_relaxed); }

 private:
  friend struct BatchReturner;
  void Return(SlotBatch* batch);

  static constexpr size_t kKept = 1024;

  const SlotSchema* schema_;
  Channel<std::unique_ptr<SlotBatch>> free_{kKept};
  std::atomic<int> made_{0};
};

}  // namespace millrace
