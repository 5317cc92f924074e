#include "dataset/feed_rows.h"

#include <algorithm>

namespace millrace {

FeedRows::FeedRows(std::unique_ptr<DataFeed> feed, const SlotSchema& schema)
    : schema_(&schema), feed_(std::move(feed)), row_(schema) {}

LineResult FeedRows::ParseLine(std::string_view line, RowSink& sink) {
  row_.Clear();
  feed_->Attach(&row_);
  const LineResult result = feed_->ParseLine(line);
  feed_->Detach();
  if (result != LineResult::kRow) return result;
  sink.BeginRow();
  for (const SlotSpec& slot : schema_->used()) {
    if (slot.type == SlotType::kUint64) {
      const std::span<const uint64_t> ids = row_.ids(slot.id);
      sink.EndIds(slot.id, std::copy(ids.begin(), ids.end(), sink.BeginIds(slot.id, ids.size())));
    } else {
      const std::span<const float> floats = row_.floats(slot.id);
      sink.EndFloats(slot.id, std::copy(floats.begin(), floats.end(), sink.BeginFloats(slot.id, floats.size())));
    }
  }
  sink.EndRow();
  return result;
}

}  // namespace millrace
