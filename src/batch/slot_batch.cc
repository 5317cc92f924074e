#include "batch/slot_batch.h"

namespace millrace {

SlotBatch::SlotBatch(const SlotSchema& schema) : schema_(&schema), columns_(static_cast<size_t>(schema.used_count())) {
  Clear();
}

std::string DescribeLines(std::string_view file, uint64_t first, uint64_t last) {
  constexpr std::string_view kFrame = "frame:";
  const bool is_frame = file.starts_with(kFrame);
  std::string text(file.substr(is_frame ? kFrame.size() : 0));
  text += !is_frame ? ":" : first == last ? ": row " : ": rows ";
  text += std::to_string(is_frame ? first - 1 : first);
  if (last > first) text += "-" + std::to_string(is_frame ? last - 1 : last);
  return text;
}

void SlotBatch::Clear() {
  rows_ = 0;
  for (const SlotSpec& spec : schema_->used()) {
    SlotColumn& column = columns_[Index(spec.id)];
    column.ids.clear();
    column.floats.clear();
    column.offsets.clear();
    if (!spec.is_dense) column.offsets.push_back(0);
  }
  origins_.clear();
  spans_.clear();
}

}  // namespace millrace
