#include "inspect/multi_slot_text.h"

#include "batch/slot_batch.h"
#include "core/numbers.h"

namespace millrace {
namespace {

void AddSlot(const SlotBatch& batch, const SlotSpec& slot, int row, std::string* line) {
  if (slot.id < 0) {
    const uint64_t count = slot.is_dense ? static_cast<uint64_t>(slot.width) : 1;
    AppendExact(count, line);
    for (uint64_t i = 0; i < count; ++i) *line += " 0";
    return;
  }
  const auto at = static_cast<size_t>(row);
  const auto width = static_cast<size_t>(slot.width);
  const size_t begin = slot.is_dense ? at * width : batch.offsets(slot.id)[at];
  const size_t end = slot.is_dense ? begin + width : batch.offsets(slot.id)[at + 1];
  AppendExact(uint64_t{end - begin}, line);
  for (size_t i = begin; i < end; ++i) {
    *line += ' ';
    if (slot.type == SlotType::kFloat) {
      AppendExact(WithoutNanSign(batch.floats(slot.id)[i]), line);
    } else {
      AppendExact(batch.ids(slot.id)[i], line);
    }
  }
}

}  // namespace

std::string BatchAsMultiSlot(const SlotBatch& batch) {
  std::string text;
  for (int row = 0; row < batch.rows(); ++row) {
    const auto at = static_cast<size_t>(row);
    if (!batch.ins_ids().empty()) text += "1 " + batch.ins_ids()[at] + " ";
    if (!batch.contents().empty()) text += "1 " + batch.contents()[at] + " ";
    for (const SlotSpec& slot : batch.schema().all()) {
      AddSlot(batch, slot, row, &text);
      text += ' ';
    }
    text.back() = '\n';
  }
  return text;
}

}  // namespace millrace
