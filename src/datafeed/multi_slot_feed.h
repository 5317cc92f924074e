#pragma once

#include <memory>

#include "core/status.h"
#include "datafeed/column_sink.h"
#include "datafeed/data_feed.h"
#include "datafeed/multi_slot_options.h"
#include "datafeed/multi_slot_parser.h"

namespace millrace {

/// Reads MultiSlot text into batches. One thread.
class MultiSlotDataFeed : public DataFeed {
 public:
  /// `schema` must outlive it. Does not fail.
  static Result<std::unique_ptr<DataFeed>> Make(const SlotSchema& schema, const DataFeedDesc& desc);
  MultiSlotDataFeed(const SlotSchema& schema, const MultiSlotOptions& options)
      : sink_(schema), parser_(schema, options) {}

  Status Attach(SlotBatch* batch) final;
  Status Detach() final;
  int rows() const final { return sink_.rows(); }
  Result<LineResult> ParseLine(std::string_view line) final { return parser_.ParseLine(line, sink_); }
  const LineError& error() const final { return parser_.error(); }
  const ValueCounters& counters() const final { return parser_.counters(); }

 protected:
  MultiSlotParser& parser() { return parser_; }

 private:
  ColumnSink sink_;
  MultiSlotParser parser_;
};

/// The same lines for rows kept in memory: also packs them, and `zeros: FEED_DEFAULT` drops zeros of sparse slots.
class MultiSlotInMemoryDataFeed final : public MultiSlotDataFeed, public PackingFeed {
 public:
  /// Does not fail.
  static Result<std::unique_ptr<DataFeed>> Make(const SlotSchema& schema, const DataFeedDesc& desc);
  static MultiSlotOptions OptionsOf(const DataFeedDesc& desc);
  using MultiSlotDataFeed::MultiSlotDataFeed;

  Result<LineResult> PackLine(std::string_view line, RowSink& sink) override { return parser().ParseLine(line, sink); }
};

/// Adds both classes, SlotRecordInMemoryDataFeed (an alias of the second) and MultiSlotFileInstantDataFeed.
void AddMultiSlotFeeds(DataFeedFactory* factory);

}  // namespace millrace
