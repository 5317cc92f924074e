#pragma once

#include <memory>
#include <string_view>

#include "batch/slot_batch.h"
#include "datafeed/data_feed.h"
#include "datafeed/row_sink.h"
#include "dataset/label_thinning.h"

namespace millrace {

/// Packs the rows of a data feed. A PackingFeed packs them itself; other feeds parse each line into a batch of one row
/// first. One thread.
class FeedRows {
 public:
  /// `schema` must outlive it. Lines excluded by `thinning` give no row.
  FeedRows(std::unique_ptr<DataFeed> feed, const SlotSchema& schema, const LabelThinning& thinning = {});

  /// The position of the next row, for `thinning`.
  void BeginFile(std::string_view file, uint32_t number) { thinning_.BeginFile(file, number); }
  void set_line(uint64_t line) { line_ = line; }
  int64_t left_out() const { return thinning_.removed(); }

  /// Fails like PackingFeed::PackLine, or like DataFeed::ParseLine if the feed does not pack.
  Result<LineResult> ParseLine(std::string_view line, RowSink& sink) {
    return packs_ != nullptr ? packs_->PackLine(line, sink) : ParseIntoBatch(line, sink);
  }
  DataFeed* feed() const { return feed_.get(); }
  const LineError& error() const { return feed_->error(); }
  const ValueCounters& counters() const { return feed_->counters(); }

 private:
  Result<LineResult> ParseIntoBatch(std::string_view line, RowSink& sink);

  const SlotSchema* schema_;
  std::unique_ptr<DataFeed> feed_;
  PackingFeed* packs_;  ///< feed_ if it packs and thinning is off
  LabelThinning thinning_;
  uint64_t line_ = 0;
  SlotBatch row_;
};

}  // namespace millrace
