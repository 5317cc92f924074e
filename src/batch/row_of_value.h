#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "batch/slot_batch.h"

namespace millrace {

/// The row of value number `at` in a slot.
inline int RowOfValue(const SlotBatch& batch, SlotId slot, size_t at) {
  const SlotSpec& spec = batch.schema().used()[static_cast<size_t>(slot)];
  if (spec.is_dense) return static_cast<int>(at) / std::max(spec.width, 1);
  const std::span<const uint32_t> offsets = batch.offsets(slot);
  return static_cast<int>(std::upper_bound(offsets.begin(), offsets.end(), at) - offsets.begin()) - 1;
}

}  // namespace millrace
