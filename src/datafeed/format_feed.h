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

/// A feed of a file format: a class of its own reads a record, and hands over the values of the used slots in their
/// order. What becomes of them (empty slots, zeros, NaN, the width of a dense slot) is decided here, for all formats as
/// for MultiSlot text. One thread.
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
  /// `schema` must outlive it. A class whose slots cannot be any has a static CheckSlots(schema) as well.
  FormatFeed(const SlotSchema& schema, const MultiSlotOptions& options)
      : schema_(schema), options_(options), sink_(schema) {}

  // For Read; each returns false after it has said in error() why the record is bad.

  /// Puts the values of a slot of its type.
  bool Put(const SlotSpec& slot, std::span<const uint64_t> ids);
  bool Put(const SlotSpec& slot, std::span<const float> floats);
  /// Puts ids of a format whose ids have a sign.
  bool PutSigned(const SlotSpec& slot, std::span<const int64_t> ids);
  bool Fail(LineErrorKind kind, const std::string& slot, std::string message, size_t column = 1);
  /// Says where in the line the values of a Put that failed stand.
  bool At(size_t column);
  /// Fail, of a record behind which nothing says where the next one begins.
  bool FailForGood(LineErrorKind kind, const std::string& slot, std::string message, size_t column = 1);

  const SlotSchema& schema() const { return schema_; }
  const MultiSlotOptions& options() const { return options_; }
  /// Of the record that is read; they count when it becomes a row, or is blank.
  ValueCounters& counted() { return counted_; }

 private:
  /// Makes a row of a line or record.
  virtual LineResult Read(std::string_view line) = 0;
  /// Whether a slot may have so many values.
  bool CheckCount(const SlotSpec& slot, size_t count);
  template <class Sink>
  LineResult ReadInto(std::string_view line, Sink& sink);

  const SlotSchema& schema_;
  const MultiSlotOptions options_;
  ColumnSink sink_;
  RowSink* packs_into_ = nullptr;  ///< while PackLine reads
  ValueCounters counted_;
  ValueCounters counters_;
  LineError error_;
  std::vector<uint64_t> ids_;
  std::vector<float> floats_;
};

/// The maker of a format's feed.
template <class Feed, auto... kArguments>
Result<std::unique_ptr<DataFeed>> MakeFormat(const SlotSchema& schema, const DataFeedDesc& desc) {
  if constexpr (requires { Feed::CheckSlots(schema); }) MR_TRY(Feed::CheckSlots(schema));
  const MultiSlotOptions options = MultiSlotOptions::FromDesc(desc);
  return std::unique_ptr<DataFeed>(std::make_unique<Feed>(schema, options, kArguments...));
}

}  // namespace millrace
