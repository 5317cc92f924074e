#pragma once

#include "batch/slot_schema.h"
#include "core/status.h"
#include "runtime/executable.h"
#include "runtime/tensor.h"

namespace millrace {

/// Checks the batch inputs of a program written elsewhere: every variable that an operator reads was written before, or
/// is a parameter, or is a slot of `schema` with the declared type and sizes. `schema` can be null for a startup
/// program. Fails with kInvalidConfig, one line per mistake.
Status CheckBatchVariables(const Executable& executable, const SlotSchema* schema);

/// Whether operators read a variable of this kind as a tensor. Exceptions: readers, which report themselves if not
/// created, and the empty holders of feed and fetch.
bool IsRead(VarType::Type kind);

/// Whether a tensor can be a prediction for a batch: its first axis is the batch, or it has one value per row.
bool HasRowOfEach(const Tensor& tensor, int rows);

}  // namespace millrace
