#pragma once

#include "core/status.h"

namespace millrace {

class DataFeedFactory;
class ReaderRegistry;

// Both lists are made of the one in builtin_formats.cc: a format is a line there.

/// Adds the file formats that Millrace brings along, and MultiSlot text, for programs (`open_files`).
Status AddBuiltinFormats(ReaderRegistry* readers);
/// Adds the same formats for datasets, as data feeds of their names. MultiSlot text has feeds of other names
/// (datafeed/multi_slot_feed.h).
Status AddBuiltinFormats(DataFeedFactory* feeds);

}  // namespace millrace
