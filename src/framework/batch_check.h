#pragma once

#include "core/status.h"
#include "framework/executable.h"

namespace millrace {

/// Checks what a program that was written elsewhere takes for granted of its batches: every variable that an operator
/// reads was written before, or is a parameter, or a slot of `schema` with the type and the sizes that the program
/// says. `schema` may be null for a startup program. All mistakes come back in one kInvalidConfig, a line each.
Status CheckBatchVariables(const Executable& executable, const SlotSchema* schema);

}  // namespace millrace
