#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "batch/slot_schema.h"

namespace millrace {

/// Puts the values of one slot into a ColumnSink or a RowSink.
template <class Sink>
void PutValues(SlotId slot, std::span<const uint64_t> ids, Sink& sink) {
  sink.EndIds(slot, std::copy(ids.begin(), ids.end(), sink.BeginIds(slot, ids.size())));
}
template <class Sink>
void PutValues(SlotId slot, std::span<const float> floats, Sink& sink) {
  sink.EndFloats(slot, std::copy(floats.begin(), floats.end(), sink.BeginFloats(slot, floats.size())));
}

/// Puts a whole row into a sink: `row.ids(slot)` or `row.floats(slot)` for each used slot.
template <class Row, class Sink>
void PutRow(const SlotSchema& schema, const Row& row, Sink& sink) {
  sink.BeginRow();
  for (const SlotSpec& slot : schema.used()) {
    if (slot.type == SlotType::kUint64) {
      PutValues(slot.id, row.ids(slot.id), sink);
    } else {
      PutValues(slot.id, row.floats(slot.id), sink);
    }
  }
  sink.EndRow();
}

}  // namespace millrace
