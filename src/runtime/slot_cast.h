#pragma once

#include <cstdint>

#include "batch/slot_batch.h"
#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// Whether a slot can feed a variable of `type`: ids feed int64 and int32, floats feed float32 and float64. int64 and
/// float32 are views of the batch; the others are copies, for programs of Paddle that declare them.
bool CanFeed(SlotType slot, DType type);

/// Copies the values of a slot into `tensor` as `type`, one of the copied types of CanFeed. `dims` must have as many
/// values. Returns the position of the first id beyond int32; -1: none. Allocates only for a batch larger than all
/// before; makes one pass over the values.
int64_t CastSlot(const SlotBatch& batch, SlotId slot, DType type, const Dims& dims, Tensor* tensor);

}  // namespace millrace
