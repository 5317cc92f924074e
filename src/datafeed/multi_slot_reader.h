#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// MultiSlot text, "(count value{count})*" a line, through the same parser as datasets. Slot i is output i: uint64 for
/// int64 outputs, float for float32 ones; an output with a LoD takes any number of values, one without as many as it
/// has. A bad line is kBadData with file, line, column and slot.
FileFormat MultiSlotFormat();

}  // namespace millrace
