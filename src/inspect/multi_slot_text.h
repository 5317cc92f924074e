#pragma once

#include <string>

namespace millrace {

class SlotBatch;

/// Returns a batch as the MultiSlot lines that a feed of the same data_desc, without its pipe_command, reads as this
/// batch again: names of examples first when the feed keeps them, floats in the shortest form that reads back to the
/// same bits. The values of slots that are not used are gone; a zero stands in for them. Any thread.
std::string BatchAsMultiSlot(const SlotBatch& batch);

}  // namespace millrace
