#pragma once

#include <cstdint>
#include <vector>

#include "batch/slot_schema.h"
#include "datafeed/multi_slot_options.h"

namespace millrace {

/// The layout of all packed rows of a schema.
///
///     row = line_delta:varint  [ins_id: varint bytes]  [content: varint bytes]  control{tagged slot}  values{slot}
///
/// Slots are in SlotId order. A dense float slot is `width` floats without a control byte. Every other slot has one:
/// the upper five bits are the count (31: a varint before the values has the count), the lower three bits are the bytes
/// per id minus one. An id has 1 to 8 bytes, as needed for the largest of its slot in this row; a float has four.
/// Little endian, without padding.
struct RowLayout {
  enum class Kind : uint8_t { kIds, kFloats, kDenseIds, kDenseFloats };
  struct SlotLayout {
    Kind kind = Kind::kIds;
    uint32_t width = 0;  ///< values per row of a dense slot
  };

  /// Marks a count stored as a varint.
  static constexpr uint64_t kLongCount = 31;

  RowLayout(const SlotSchema& schema, const MultiSlotOptions& options);

  std::vector<SlotLayout> slots;  ///< by SlotId
  uint32_t control_bytes = 0;     ///< number of slots other than kDenseFloats
  bool has_ins_id = false;
  bool has_content = false;
};

}  // namespace millrace
