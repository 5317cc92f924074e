#include "inspect/batch_json.h"

#include <algorithm>
#include <span>

#include "batch/slot_batch.h"
#include "core/json_writer.h"

namespace millrace {
namespace {

template <class Number>
void AppendList(std::span<const Number> numbers, std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendNumber(numbers[i], out);
  }
  out->push_back(']');
}

void AppendTexts(std::string_view name, std::span<const std::string> texts, std::string* out) {
  out->append(",\"").append(name).append("\":[");
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendQuoted(texts[i], out);
  }
  out->push_back(']');
}

// [values, 1] for a sparse slot; a dense slot's shape with the last -1 replaced by the remaining size.
std::vector<uint64_t> ShapeOf(const SlotSpec& slot, size_t values) {
  if (!slot.is_dense) return {values, 1};
  std::vector<uint64_t> shape;
  uint64_t known = 1;
  for (int64_t size : slot.shape) known *= size > 0 ? static_cast<uint64_t>(size) : 1;
  for (int64_t size : slot.shape) shape.push_back(size > 0 ? static_cast<uint64_t>(size) : values / known);
  return shape;
}

void AppendSlot(const SlotBatch& batch, const SlotSpec& slot, std::string* out) {
  AppendQuoted(slot.name, out);
  const bool ids = slot.type == SlotType::kUint64;
  const size_t values = ids ? batch.ids(slot.id).size() : batch.floats(slot.id).size();
  out->append(":{\"shape\":");
  AppendList<uint64_t>(ShapeOf(slot, values), out);
  if (!slot.is_dense) {
    out->append(",\"lod\":");
    AppendList(batch.offsets(slot.id), out);
  }
  out->append(",\"values\":");
  if (ids) {
    AppendList(batch.ids(slot.id), out);
  } else {
    AppendList(batch.floats(slot.id), out);
  }
  out->push_back('}');
}

// Appends the values of one row of one slot, for a table.
void AppendCell(const SlotBatch& batch, const SlotSpec& slot, int row, int max_values, std::string* out) {
  const auto index = static_cast<size_t>(row);
  const auto width = static_cast<size_t>(slot.width);
  const size_t begin = slot.is_dense ? index * width : batch.offsets(slot.id)[index];
  const size_t end = slot.is_dense ? begin + width : batch.offsets(slot.id)[index + 1];
  const size_t shown = std::min(end, begin + static_cast<size_t>(max_values));
  for (size_t i = begin; i < shown; ++i) {
    if (i > begin) out->push_back(' ');
    if (slot.type == SlotType::kUint64) {
      AppendNumber(batch.ids(slot.id)[i], out);
    } else {
      AppendNumber(batch.floats(slot.id)[i], out);
    }
  }
  if (shown < end) out->append(" ... (" + std::to_string(end - begin) + " values)");
}

}  // namespace

std::string BatchAsJson(const SlotBatch& batch, int64_t number) {
  std::string json =
      "{\"batch\":" + std::to_string(number) + ",\"rows\":" + std::to_string(batch.rows()) + ",\"slots\":{";
  for (const SlotSpec& slot : batch.schema().used()) {
    if (slot.id > 0) json.push_back(',');
    AppendSlot(batch, slot, &json);
  }
  json.push_back('}');
  if (!batch.ins_ids().empty()) AppendTexts("ins_ids", batch.ins_ids(), &json);
  if (!batch.contents().empty()) AppendTexts("contents", batch.contents(), &json);
  json.push_back('}');
  return json;
}

std::string BatchAsTable(const SlotBatch& batch, int64_t number, int max_values) {
  std::string table = "batch " + std::to_string(number) + ": " + std::to_string(batch.rows()) + " rows\n";
  size_t name_width = 0;
  for (const SlotSpec& slot : batch.schema().used()) name_width = std::max(name_width, slot.name.size());
  for (int row = 0; row < batch.rows(); ++row) {
    table += "  row " + std::to_string(row);
    if (!batch.ins_ids().empty()) table += "  " + batch.ins_ids()[static_cast<size_t>(row)];
    if (!batch.contents().empty()) table += "  " + batch.contents()[static_cast<size_t>(row)];
    table.push_back('\n');
    for (const SlotSpec& slot : batch.schema().used()) {
      table += "    " + slot.name + std::string(name_width - slot.name.size() + 2, ' ');
      AppendCell(batch, slot, row, max_values, &table);
      table.push_back('\n');
    }
  }
  return table;
}

}  // namespace millrace
