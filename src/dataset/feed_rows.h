#pragma once

#include <memory>
#include <string_view>

#include "batch/slot_batch.h"
#include "datafeed/data_feed.h"
#include "datafeed/row_sink.h"

namespace millrace {

/// Packs the rows of a data feed: by the feed itself where it is a PackingFeed; of any other, each line is parsed into
/// a batch of its own first. One thread.
class FeedRows {
 public:
  /// `schema` must outlive it.
  FeedRows(std::unique_ptr<DataFeed> feed, const SlotSchema& schema);

  /// As PackingFeed::PackLine.
  Result<LineResult> ParseLine(std::string_view line, RowSink& sink) {
    return packs_ != nullptr ? packs_->PackLine(line, sink) : ParseIntoBatch(line, sink);
  }
  DataFeed* feed() { return feed_.get(); }
  const LineError& error() const { return feed_->error(); }
  const ValueCounters& counters() const { return feed_->counters(); }

 private:
  Result<LineResult> ParseIntoBatch(std::string_view line, RowSink& sink);

  const SlotSchema* schema_;
  std::unique_ptr<DataFeed> feed_;
  PackingFeed* packs_;  ///< feed_, if it packs
  SlotBatch row_;
};

}  // namespace millrace
