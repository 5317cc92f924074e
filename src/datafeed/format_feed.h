#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "datafeed/column_sink.h"
#include "datafeed/data_feed.h"
#include "datafeed/multi_slot_options.h"

namespace millrace {

/// Base of feeds for file formats: a subclass reads a record and passes the values of the used slots in order. This
/// class handles empty slots, zeros, NaN and dense widths for all formats as for MultiSlot text. One thread.
class FormatFeed : public DataFeed, public PackingFeed {
 public:
  Status Attach(SlotBatch* batch) final;
  Status Detach() final;
  int rows() const final { return sink_.rows(); }
  Result<LineResult> ParseLine(std::string_view line) final;
  Result<LineResult> PackLine(std::string_view line, RowSink& sink) final;
  const LineError& error() const final { return error_; }
  const ValueCounters& counters() const final { return counters_; }

 protected:
  /// `schema` must outlive it. A subclass that restricts slots also has a static CheckSlots(schema).
  FormatFeed(const SlotSchema& schema, const MultiSlotOptions& options)
      : schema_(schema), options_(options), sink_(schema) {}

  // For Read. Each returns false after setting error().

  /// Puts the values of a slot of its type.
  bool Put(const SlotSpec& slot, std::span<const uint64_t> ids);
  bool Put(const SlotSpec& slot, std::span<const float> floats);
  /// Puts signed ids.
  bool PutSigned(const SlotSpec& slot, std::span<const int64_t> ids);
  bool Fail(LineErrorKind kind, const std::string& slot, std::string message, size_t column = 1);
  /// Adds the position of the values to the error of a failed Put.
  bool At(size_t column);
  /// Like Fail, for a record after which the next one cannot be found: ends reading.
  bool FailForGood(LineErrorKind kind, const std::string& slot, std::string message, size_t column = 1);

  const SlotSchema& schema() const { return schema_; }
  const MultiSlotOptions& options() const { return options_; }
  /// Counts of the current record, added to the totals if it becomes a row or is blank.
  ValueCounters& counted() { return counted_; }

 private:
  /// Reads a line or record into a row.
  virtual LineResult Read(std::string_view line) = 0;
  /// Whether a slot can have this number of values.
  bool CheckCount(const SlotSpec& slot, size_t count);
  template <class Sink>
  LineResult ReadInto(std::string_view line, Sink& sink);

  const SlotSchema& schema_;
  const MultiSlotOptions options_;
  ColumnSink sink_;
  RowSink* packs_into_ = nullptr;  ///< set while PackLine runs
  ValueCounters counted_;
  ValueCounters counters_;
  LineError error_;
  std::vector<uint64_t> ids_;
  std::vector<float> floats_;
};

/// The maker of a format's feed. Fails only with Feed::CheckSlots' errors.
template <class Feed, auto... kArguments>
Result<std::unique_ptr<DataFeed>> MakeFormat(const SlotSchema& schema, const DataFeedDesc& desc) {
  if constexpr (requires { Feed::CheckSlots(schema); }) MR_TRY(Feed::CheckSlots(schema));
  const MultiSlotOptions options = MultiSlotOptions::FromDesc(desc);
  return std::unique_ptr<DataFeed>(std::make_unique<Feed>(schema, options, kArguments...));
}

}  // namespace millrace
