#include "dataset/feed_rows.h"

#include "datafeed/put_row.h"

namespace millrace {

FeedRows::FeedRows(std::unique_ptr<DataFeed> feed, const SlotSchema& schema, const LabelThinning& thinning)
    : schema_(&schema),
      feed_(std::move(feed)),
      packs_(thinning.is_active() ? nullptr : dynamic_cast<PackingFeed*>(feed_.get())),
      thinning_(thinning),
      row_(schema) {}

Result<LineResult> FeedRows::ParseIntoBatch(std::string_view line, RowSink& sink) {
  row_.Clear();
  MR_TRY(feed_->Attach(&row_));
  MR_ASSIGN(const LineResult result, feed_->ParseLine(line));
  MR_TRY(feed_->Detach());
  if (result != LineResult::kRow) return result;
  if (thinning_.is_active() && !thinning_.Keeps(row_, 0, line_)) return LineResult::kBlank;
  PutRow(*schema_, row_, sink);
  return result;
}

}  // namespace millrace
