#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "batch/slot_batch.h"
#include "core/channel.h"

namespace millrace {

class BatchPool;

/// Gives a batch back to its pool.
struct BatchReturner {
  BatchPool* pool = nullptr;
  void operator()(SlotBatch* batch) const;
};

/// Owns a batch until it dies, then returns it to the pool. Null means "end of the pass".
using BatchPtr = std::unique_ptr<SlotBatch, BatchReturner>;

/// Keeps batches for reuse, so that a warm pass allocates none.
///
/// Thread-safe and without locks. Must outlive every BatchPtr that it gave out.
class BatchPool {
 public:
  explicit BatchPool(const SlotSchema& schema) : schema_(&schema) {}

  /// An empty batch; makes one when none is free.
  BatchPtr Take();
  /// Batches made so far: the most that were in use at once.
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
