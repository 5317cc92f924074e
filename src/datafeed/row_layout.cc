#include "datafeed/row_layout.h"

namespace millrace {

RowLayout::RowLayout(const SlotSchema& schema, const MultiSlotOptions& options)
    : has_ins_id(options.parse_ins_id || options.parse_logkey), has_content(options.parse_content) {
  for (const SlotSpec& slot : schema.used()) {
    const bool is_ids = slot.type == SlotType::kUint64;
    SlotLayout layout;
    layout.kind =
        slot.is_dense ? (is_ids ? Kind::kDenseIds : Kind::kDenseFloats) : (is_ids ? Kind::kIds : Kind::kFloats);
    layout.width = static_cast<uint32_t>(slot.width);
    if (layout.kind != Kind::kDenseFloats) ++control_bytes;
    slots.push_back(layout);
  }
}

}  // namespace millrace
