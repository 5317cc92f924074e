#pragma once

#include <cstdint>

#include "batch/slot_batch.h"

namespace millrace {

/// Leaves ids 0 and floats below 1e-6 out of the sparse slots of a batch, as a parser does with `zeros: DROP`: a row's
/// list that becomes empty keeps one 0, an empty one stays so. How many values are gone. Allocates nothing.
int64_t DropZeros(SlotBatch& batch);

}  // namespace millrace
