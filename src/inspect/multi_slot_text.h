#pragma once

#include <string>

namespace millrace {

class SlotBatch;

/// Returns a batch as MultiSlot lines that a feed with the same data_desc, without pipe_command, reads as this batch:
/// names of examples first if the feed provides them, floats in the shortest form that reads back to the same bits.
/// Unused slots contain a zero, because their values are lost. Any thread.
std::string BatchAsMultiSlot(const SlotBatch& batch);

}  // namespace millrace
