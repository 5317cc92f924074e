#include "batch/batch_pool.h"

namespace millrace {

void BatchReturner::operator()(SlotBatch* batch) const { pool->Return(batch); }

BatchPtr BatchPool::Take() {
  if (std::optional<std::unique_ptr<SlotBatch>> batch = free_.TryPop()) {
    return BatchPtr(batch->release(), BatchReturner{this});
  }
  made_.fetch_add(1, std::memory_order_relaxed);
  return BatchPtr(new SlotBatch(*schema_), BatchReturner{this});
}

void BatchPool::Return(SlotBatch* batch) {
  batch->Clear();
  std::unique_ptr<SlotBatch> owned(batch);
  // A full pool frees the batch; more than kKept are rarely in use.
  (void)free_.TryPush(owned);
}

}  // namespace millrace
