#pragma once

#include <cstdint>

#include "batch/slot_batch.h"
#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// Whether a slot may feed a variable of `type`: ids feed int64 and int32, floats float32 and float64. The first of
/// each are views of the batch; the others are copies, as programs of Paddle declare them.
bool CanFeed(SlotType slot, DType type);

/// Copies the values of a slot into `tensor` as its `type`, which CanFeed and is no view's. The shape is the caller's,
/// and has as many values. An id beyond int32 is the number of the value in the slot; -1 when all fit. Allocates when
/// the batch is larger than all before; one pass over the values.
int64_t CastSlot(const SlotBatch& batch, SlotId slot, DType type, const Dims& dims, Tensor* tensor);

}  // namespace millrace
