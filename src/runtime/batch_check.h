#pragma once

#include "batch/slot_schema.h"
#include "core/status.h"
#include "runtime/executable.h"
#include "runtime/tensor.h"

namespace millrace {

/// Checks what a program that was written elsewhere takes for granted of its batches: every variable that an operator
/// reads was written before, or is a parameter, or a slot of `schema` with the type and the sizes that the program
/// says. `schema` may be null for a startup program. All mistakes come back in one kInvalidConfig, a line each.
Status CheckBatchVariables(const Executable& executable, const SlotSchema* schema);

/// Whether operators read a variable of that kind as a tensor: all but a reader, which says itself that it is not made,
/// and the holders of feed and fetch, which hold nothing.
bool IsRead(VarType::Type kind);

/// True for what can be a prediction for a batch: its first axis is the batch, or it has one value for each row.
bool HasRowOfEach(const Tensor& tensor, int rows);

}  // namespace millrace
