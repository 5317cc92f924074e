#pragma once

#include "core/status.h"

namespace millrace {

class DataFeedFactory;
class ReaderRegistry;

// Both lists are created from the one in builtin_formats.cc: add a format there.

/// Adds the built-in file formats and MultiSlot text for programs (`open_files`). Fails with kAlreadyExists if a name
/// is taken.
Status AddBuiltinFormats(ReaderRegistry* readers);
/// Adds the same formats for datasets, as data feeds with the formats' names. MultiSlot text has separate feeds
/// (datafeed/multi_slot_feed.h). Fails with kAlreadyExists if a name is taken.
Status AddBuiltinFormats(DataFeedFactory* feeds);

}  // namespace millrace
