#pragma once

#include <string_view>

#include "datafeed/multi_slot_parser.h"

namespace millrace {

/// Reads a line as MultiSlotParser does, plainly: token by token, every check in its place. It is what the fast path is
/// compared with, and what reads the lines that the fast path leaves alone. Adds to `counters` when the line is not
/// bad; fills `error` when it is. Needs no bytes after the line.
template <class Sink>
LineResult ParseLineScalar(const SlotSchema& schema, const MultiSlotOptions& options, std::string_view line, Sink& sink,
                           ValueCounters& counters, LineError& error);

}  // namespace millrace
