#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// MultiSlot text, "(count value{count})*" per line, parsed like in datasets. Slot i is output i: uint64 for int64
/// outputs, float for float32 outputs. An output with a LoD accepts any number of values, one without requires its
/// size. A bad line fails with kBadData, naming file, line, column and slot.
FileFormat MultiSlotFormat();

}  // namespace millrace
