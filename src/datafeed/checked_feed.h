#pragma once

#include <exception>
#include <memory>
#include <string>

#include "core/status.h"
#include "datafeed/data_feed.h"

namespace millrace {

/// A plugin's data feed cannot go on: it broke a promise of DataFeed so that its rows cannot be believed, or has no
/// memory for them. FeedThrew makes it a failure.
class FeedFault : public std::exception {
 public:
  explicit FeedFault(std::string text) : FeedFault(InvalidConfig(std::move(text))) {}
  explicit FeedFault(Status failure) : failure_(std::move(failure)) {}
  const char* what() const noexcept override { return failure_.message().c_str(); }
  const Status& failure() const { return failure_; }

 private:
  Status failure_;
};

/// A plugin's data feed, held to what DataFeed promises: a line gives one row or none, and a batch has the values that
/// its slots say. Without, rows would be lost or shifted in silence.
///
/// A promised row that is missing, anything else that leaves the batch in doubt, and whatever the feed throws become a
/// FeedFault that names feed and plugin. A line that is refused without a reason is a bad line like others.
///
/// Values that a line which gave no row leaves in a batch are seen when no row follows in that batch. Otherwise only
/// the feed knows that they are not the next row's, and they are taken for its. One thread; warm, it allocates nothing.
class CheckedFeed final : public DataFeed {
 public:
  /// `schema` must outlive it; `who` is how messages call the feed.
  CheckedFeed(std::unique_ptr<DataFeed> feed, const SlotSchema& schema, std::string who);

  void Attach(SlotBatch* batch) override;
  void Detach() override;
  int rows() const override { return rows_; }
  LineResult ParseLine(std::string_view line) override;
  const LineError& error() const override { return is_own_error_ ? own_error_ : feed_->error(); }
  const ValueCounters& counters() const override { return feed_->counters(); }

 private:
  void CheckColumns() const;

  const std::unique_ptr<DataFeed> feed_;
  const SlotSchema* schema_;
  const std::string who_;
  SlotBatch* batch_ = nullptr;
  int rows_ = 0;
  bool is_own_error_ = false;
  LineError own_error_;
};

}  // namespace millrace
