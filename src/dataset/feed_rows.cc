#include "dataset/feed_rows.h"

#include "datafeed/put_row.h"

namespace millrace {

FeedRows::FeedRows(std::unique_ptr<DataFeed> feed, const SlotSchema& schema)
    : schema_(&schema), feed_(std::move(feed)), row_(schema) {}

LineResult FeedRows::ParseLine(std::string_view line, RowSink& sink) {
  row_.Clear();
  feed_->Attach(&row_);
  const LineResult result = feed_->ParseLine(line);
  feed_->Detach();
  if (result != LineResult::kRow) return result;
  PutRow(*schema_, row_, sink);
  return result;
}

}  // namespace millrace
