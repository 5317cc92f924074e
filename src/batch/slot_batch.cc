#include "batch/slot_batch.h"

namespace millrace {

SlotBatch::SlotBatch(const SlotSchema& schema) : schema_(&schema), columns_(static_cast<size_t>(schema.used_count())) {
  Clear();
}

void SlotBatch::Clear() {
  rows_ = 0;
  for (const SlotSpec& spec : schema_->used()) {
    SlotColumn& column = columns_[Index(spec.id)];
    column.ids.clear();
    column.floats.clear();
    column.offsets.clear();
    if (!spec.is_dense) column.offsets.push_back(0);
  }
  origins_.clear();
  spans_.clear();
}

}  // namespace millrace
