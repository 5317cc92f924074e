#pragma once

#include <cstdint>

#include "batch/slot_batch.h"

namespace millrace {

/// Removes ids 0 and floats below 1e-6 from the sparse slots of a batch, like a parser with `zeros: DROP`: a list that
/// becomes empty keeps one 0; an empty list stays empty. Returns the number of removed values. Does not allocate.
int64_t DropZeros(SlotBatch& batch);

}  // namespace millrace
