#pragma once

#include "runtime/executable.h"
#include "runtime/scope.h"

namespace millrace {

/// Marks what `program` looks up in tables of what its `read` operators take from the readers of `scope`, as it is or
/// cast or reshaped: ReaderHolder::MarkIds. A lookup that wants zeros for what is no id (out_of_range: ZERO) marks
/// nothing. To be called before the readers are read.
void MarkLookedUp(const Executable& program, Scope& scope);

}  // namespace millrace
