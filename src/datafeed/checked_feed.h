#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "datafeed/data_feed.h"

namespace millrace {

/// What a plugin's data feed threw as a failure, to be called within a catch block: kUnavailable when memory ran out,
/// otherwise kInvalidConfig that blames `who`.
Status FeedThrew(const std::string& who);

/// A plugin's data feed, held to what DataFeed promises: a line gives one row or none, and a batch has the values that
/// its slots say. Without, rows would be lost or shifted in silence.
///
/// A failure that names feed and plugin is what the feed throws or reports, and whatever leaves the batch in doubt,
/// such as a row that the feed counts and did not make. A line that is refused without a reason is a bad line like
/// others.
///
/// Values that a line which gave no row leaves in a batch are seen when no row follows in that batch. Otherwise only
/// the feed knows that they are not the next row's, and they are taken for its. One thread; warm, it allocates nothing.
class CheckedFeed final : public DataFeed {
 public:
  /// `schema` must outlive it; `who` is how messages call the feed.
  CheckedFeed(std::unique_ptr<DataFeed> feed, const SlotSchema& schema, std::string who);

  Status Attach(SlotBatch* batch) override;
  Status Detach() override;
  int rows() const override { return rows_; }
  Result<LineResult> ParseLine(std::string_view line) override;
  const LineError& error() const override { return is_own_error_ ? own_error_ : feed_->error(); }
  const ValueCounters& counters() const override { return feed_->counters(); }

 private:
  /// Runs a call of the feed; what it throws or reports is a failure with its name.
  template <class Call>
  Status Guarded(const Call& call) const;
  Status Fault(const std::string& what) const;
  Status CheckColumns() const;

  const std::unique_ptr<DataFeed> feed_;
  const SlotSchema* schema_;
  const std::string who_;
  SlotBatch* batch_ = nullptr;
  int rows_ = 0;
  bool is_own_error_ = false;
  LineError own_error_;
};

}  // namespace millrace
