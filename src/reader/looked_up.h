#pragma once

#include "runtime/executable.h"
#include "runtime/scope.h"

namespace millrace {

/// Calls ReaderHolder::MarkIds for the outputs of `scope`'s readers that `program` reads with `read` and looks up in
/// tables, directly or after a cast or reshape. Ignores lookups with zeros for invalid ids (out_of_range: ZERO). Call
/// it before reading.
void MarkLookedUp(const Executable& program, Scope& scope);

}  // namespace millrace
