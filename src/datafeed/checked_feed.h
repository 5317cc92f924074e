#pragma once

#include <exception>
#include <memory>
#include <string>

#include "datafeed/data_feed.h"

namespace millrace {

/// A plugin's data feed broke a promise of DataFeed so that its rows cannot be believed. FeedThrew makes it a failure.
class FeedFault : public std::exception {
 public:
  explicit FeedFault(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// A plugin's data feed, held to what DataFeed promises: a line gives one row or none, and a batch has the values that
/// its slots say. Without, rows would be lost or shifted in silence.
///
/// A row that was promised and is not there is a bad line, with its place; whatever leaves the batch in doubt, as what
/// the feed throws does, is a FeedFault that names feed and plugin. One thread; warm, it allocates nothing.
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
  LineResult Bad(const std::string& message);
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
