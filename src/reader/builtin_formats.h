#pragma once

#include "core/status.h"

namespace millrace {

class ReaderRegistry;

/// Adds the file formats of this room. MultiSlot text is datafeed's (datafeed/multi_slot_reader.h).
Status RegisterBuiltinFormats(ReaderRegistry& registry);

}  // namespace millrace
