#pragma once

#include <string>
#include <string_view>

#include "batch/slot_schema.h"
#include "datafeed/multi_slot_options.h"

namespace millrace::testing {

/// Parses the lines of `text` with the scalar and the fast parser, into columns and into packed rows that are decoded
/// again, and compares results, errors, counters and every bit of the batches. Empty when all agree, otherwise what
/// differs.
std::string CompareParsers(const SlotSchema& schema, const MultiSlotOptions& options, std::string_view text);

}  // namespace millrace::testing
