#include "runtime/slot_cast.h"

#include <algorithm>
#include <limits>

namespace millrace {

bool CanFeed(SlotType slot, DType type) {
  if (slot == SlotType::kFloat) return type == DType::kFloat32 || type == DType::kFloat64;
  return type == DType::kInt64 || type == DType::kInt32;
}

int64_t CastSlot(const SlotBatch& batch, SlotId slot, DType type, const Dims& dims, Tensor* tensor) {
  if (type == DType::kFloat64) {
    const std::span<const float> values = batch.floats(slot);
    std::copy(values.begin(), values.end(), tensor->Resize<double>(dims));
    return -1;
  }
  const std::span<const uint64_t> ids = batch.ids(slot);
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  const auto too_large = std::find_if(ids.begin(), ids.end(), [](uint64_t id) { return id > kMost; });
  if (too_large != ids.end()) return too_large - ids.begin();
  std::transform(ids.begin(), ids.end(), tensor->Resize<int32_t>(dims),
                 [](uint64_t id) { return static_cast<int32_t>(id); });
  return -1;
}

}  // namespace millrace
