#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "datafeed/data_feed.h"

namespace millrace {

/// Converts an exception of a plugin's data feed; call it within a catch block. Returns kUnavailable if memory ran out,
/// otherwise kInvalidConfig naming `who`.
Status FeedThrew(const std::string& who);

/// Checks that a plugin's data feed fulfils DataFeed's contract: a line gives at most one row, and a batch has the
/// values its slots require. Otherwise rows could be lost or shifted silently.
///
/// Every failure names feed and plugin. The feed's own failures keep their code, except that kCancelled, which nobody
/// requested, becomes kInvalidConfig. Fails with kInvalidConfig also if the feed throws or leaves the batch
/// inconsistent, for example by counting a row it did not write; kUnavailable if memory runs out. A line rejected
/// without a reason is a normal bad line.
///
/// If a line without a row leaves values in a batch, this is detected unless another row follows in that batch; then
/// the values are attributed to that row. One thread; does not allocate when warm.
class CheckedFeed final : public DataFeed {
 public:
  /// `schema` must outlive it; `who` is the feed's name in messages.
  CheckedFeed(std::unique_ptr<DataFeed> feed, const SlotSchema& schema, std::string who);

  Status Attach(SlotBatch* batch) override;
  Status Detach() override;
  int rows() const override { return rows_; }
  Result<LineResult> ParseLine(std::string_view line) override;
  const LineError& error() const override { return is_own_error_ ? own_error_ : feed_->error(); }
  const ValueCounters& counters() const override { return feed_->counters(); }

 private:
  /// Calls the feed and converts exceptions and failures to one that names it.
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
