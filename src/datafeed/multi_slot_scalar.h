#pragma once

#include <string_view>

#include "datafeed/multi_slot_parser.h"

namespace millrace {

/// Parses a line like MultiSlotParser, token by token. It is the reference for the fast path and parses lines that the
/// fast path skips. Adds to `counters` unless the line is bad, else fills `error`. Needs no padding after the line.
template <class Sink>
LineResult ParseLineScalar(const SlotSchema& schema, const MultiSlotOptions& options, std::string_view line, Sink& sink,
                           ValueCounters& counters, LineError& error);

}  // namespace millrace
