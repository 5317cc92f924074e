#pragma once

#include <cstdint>
#include <vector>

#include "batch/slot_schema.h"
#include "datafeed/multi_slot_options.h"

namespace millrace {

/// The shape that all packed rows of a schema share.
///
///     row = line_delta:varint  [ins_id: varint bytes]  [content: varint bytes]  control{tagged slot}  values{slot}
///
/// Slots stand in SlotId order. A dense float slot is `width` floats and needs no control byte; every other slot has
/// one: its upper five bits are the count (31: a varint with the count stands before the values), its lower three bits
/// are the bytes that each id of the slot takes, less one. An id takes 1 to 8 bytes, as the largest of its slot in
/// this row needs; a float takes four. Little endian, no padding between.
struct RowLayout {
  enum class Kind : uint8_t { kIds, kFloats, kDenseIds, kDenseFloats };
  struct SlotLayout {
    Kind kind = Kind::kIds;
    uint32_t width = 0;  ///< values a row of a dense slot
  };

  /// The count that says: see the varint.
  static constexpr uint64_t kLongCount = 31;

  RowLayout(const SlotSchema& schema, const MultiSlotOptions& options);

  std::vector<SlotLayout> slots;  ///< by SlotId
  uint32_t control_bytes = 0;     ///< slots that are not kDenseFloats
  bool has_ins_id = false;
  bool has_content = false;
};

}  // namespace millrace
