#include "datafeed/checked_feed.h"

#include <glog/logging.h>

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "core/exception_text.h"
#include "runtime/lod_offsets.h"

namespace millrace {
namespace {

/// Runs a call of the feed; what it throws but want of memory becomes a fault with its name.
template <class Call>
auto Guarded(const std::string& who, Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    throw FeedFault(who + " threw " + DescribeException());
  }
}

/// True for offsets that cut `values` values into so many rows.
bool CutsIntoRows(std::span<const uint32_t> offsets, size_t rows, size_t values) {
  return offsets.size() == rows + 1 && CutsWhole(offsets, static_cast<int64_t>(values));
}

}  // namespace

CheckedFeed::CheckedFeed(std::unique_ptr<DataFeed> feed, const SlotSchema& schema, std::string who)
    : feed_(std::move(feed)), schema_(&schema), who_(std::move(who)) {}

void CheckedFeed::Attach(SlotBatch* batch) {
  const int rows = Guarded(who_, [&] {
    feed_->Attach(batch);
    return feed_->rows();
  });
  if (rows != 0) throw FeedFault(who_ + " counts " + std::to_string(rows) + " rows in a new batch");
  batch_ = batch;
  rows_ = 0;
}

void CheckedFeed::Detach() {
  CHECK(batch_ != nullptr) << who_ << " fills no batch";
  Guarded(who_, [&] { feed_->Detach(); });
  CheckColumns();
  batch_ = nullptr;
}

LineResult CheckedFeed::ParseLine(std::string_view line) {
  is_own_error_ = false;
  const auto [result, rows] = Guarded(who_, [&] {
    const LineResult got = feed_->ParseLine(line);
    return std::pair(got, feed_->rows());
  });
  const int more = result == LineResult::kRow ? 1 : 0;
  if (rows != rows_ + more && rows != rows_) {
    throw FeedFault(who_ + " counts " + std::to_string(rows) + " rows behind a line that gave " +
                    (more == 1 ? "one" : "none") + " to " + std::to_string(rows_));
  }
  // No bad lines, which a job may skip: values of the row that was begun would slide into the next one.
  if (rows != rows_ + more) throw FeedFault(who_ + " says that it made a row, and made none");
  if (result != LineResult::kRow && result != LineResult::kBlank && result != LineResult::kBad) {
    throw FeedFault(who_ + " gave the result " + std::to_string(static_cast<int>(result)) + ", which there is not");
  }
  rows_ = rows;
  if (result == LineResult::kBad && feed_->error().message.empty() && feed_->error().expectation.empty()) {
    is_own_error_ = true;
    own_error_ = LineError();
    own_error_.kind = LineErrorKind::kRefused;
    own_error_.message = who_ + " refuses the line and gives no reason";
  }
  return result;
}

void CheckedFeed::CheckColumns() const {
  if (batch_->rows() != rows_) {
    throw FeedFault(who_ + " made " + std::to_string(rows_) + " rows and handed on " + std::to_string(batch_->rows()));
  }
  if (rows_ == 0) return;
  const auto rows = static_cast<size_t>(rows_);
  for (const SlotSpec& slot : schema_->used()) {
    const size_t values = slot.type == SlotType::kUint64 ? batch_->ids(slot.id).size() : batch_->floats(slot.id).size();
    const auto width = static_cast<size_t>(std::max(slot.width, 0));
    if (slot.is_dense ? values == rows * width : CutsIntoRows(batch_->offsets(slot.id), rows, values)) continue;
    throw FeedFault(who_ + " gave slot \"" + slot.name + "\" " + std::to_string(values) + " values in " +
                    std::to_string(rows) + (rows == 1 ? " row" : " rows") +
                    (slot.is_dense ? " of " + std::to_string(width) : ", which its offsets do not cut into rows"));
  }
}

}  // namespace millrace
