#pragma once

#include <string>

namespace millrace {

class TrainerDesc;

/// Returns the configuration as prototxt with slot ranges written out. It reads back to the same message, slot ranges
/// aside. Fields that were left at their defaults follow each message as comments, so that nothing is hidden.
std::string PrintConfig(const TrainerDesc& desc);

/// Writes "C1..C26" out as 26 slots wherever slots are named: in multi_slot_desc and in embedding layers. Ranges that
/// are not valid stay as they are.
void ExpandSlotRanges(TrainerDesc* desc);

}  // namespace millrace
