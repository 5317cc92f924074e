#include "dataset/line_batch.h"

#include <numeric>

#include "data_feed.pb.h"

namespace millrace {

Result<SlotSchema> LineBatchSchema(const DataFeedDesc& desc) {
  DataFeedDesc sparse = desc;
  for (Slot& slot : *sparse.mutable_multi_slot_desc()->mutable_slots()) {
    slot.clear_is_dense();
    slot.clear_shape();
  }
  return SlotSchema::Create(sparse);
}

Status ExpandLineBatch(const SlotBatch& line, const std::vector<std::string>& files, SlotBatch* batch) {
  const RowOrigin origin = line.origins()[0];
  size_t rows = 0;
  for (const SlotSpec& slot : batch->schema().used()) {
    const std::span<const uint64_t> ids = line.ids(slot.id);
    const std::span<const float> floats = line.floats(slot.id);
    const size_t values = ids.size() + floats.size();
    const size_t width = slot.is_dense ? static_cast<size_t>(slot.width) : 1;
    if (slot.id == 0) rows = values / width;
    if (values != rows * width || rows == 0) {
      return BadData(files[origin.file] + ":" + std::to_string(origin.line) + ": slot \"" + slot.name +
                     "\": expected " + std::to_string(std::max<size_t>(rows, 1) * width) + " values, for the " +
                     std::to_string(std::max<size_t>(rows, 1)) + " examples of the line, found " +
                     std::to_string(values));
    }
    SlotColumn& column = batch->column(slot.id);
    column.ids.assign(ids.begin(), ids.end());
    column.floats.assign(floats.begin(), floats.end());
    if (slot.is_dense) continue;
    column.offsets.resize(rows + 1);
    std::iota(column.offsets.begin(), column.offsets.end(), 0U);
  }
  if (!line.ins_ids().empty()) batch->mutable_ins_ids().assign(rows, line.ins_ids()[0]);
  if (!line.contents().empty()) batch->mutable_contents().assign(rows, line.contents()[0]);
  batch->mutable_origins().assign(rows, origin);
  batch->set_rows(static_cast<int>(rows));
  return Status::Ok();
}

}  // namespace millrace
