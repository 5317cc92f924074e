#pragma once

#include <memory>
#include <string_view>

#include "batch/slot_batch.h"
#include "datafeed/data_feed.h"
#include "datafeed/row_sink.h"

namespace millrace {

/// Packs the rows of a data feed of a plugin or a format, which knows batches alone: each line is parsed into a batch
/// of its own first. One thread.
class FeedRows {
 public:
  /// `schema` must outlive it.
  FeedRows(std::unique_ptr<DataFeed> feed, const SlotSchema& schema);

  /// As MultiSlotParser::ParseLine, with the feed's failures.
  Result<LineResult> ParseLine(std::string_view line, RowSink& sink);
  DataFeed* feed() { return feed_.get(); }
  const LineError& error() const { return feed_->error(); }
  const ValueCounters& counters() const { return feed_->counters(); }

 private:
  const SlotSchema* schema_;
  std::unique_ptr<DataFeed> feed_;
  SlotBatch row_;
};

}  // namespace millrace
