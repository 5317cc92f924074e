#include "datafeed/checked_feed.h"

#include <glog/logging.h>

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "core/exception_text.h"
#include "core/harmless_text.h"
#include "runtime/lod_offsets.h"

namespace millrace {
namespace {

/// Whether offsets cut `values` values into `rows` rows.
bool CutsIntoRows(std::span<const uint32_t> offsets, size_t rows, size_t values) {
  return offsets.size() == rows + 1 && CutsWhole(offsets, static_cast<int64_t>(values));
}

}  // namespace

Status FeedThrew(const std::string& who) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Unavailable("no memory for the rows that are read");
  } catch (...) {
    return InvalidConfig("data_desc.name: " + who + " threw " + DescribeException());
  }
}

CheckedFeed::CheckedFeed(std::unique_ptr<DataFeed> feed, const SlotSchema& schema, std::string who)
    : feed_(std::move(feed)), schema_(&schema), who_(std::move(who)) {}

template <class Call>
Status CheckedFeed::Guarded(const Call& call) const {
  try {
    Status reported = call();
    if (reported.ok()) return reported;
    reported = Harmless(reported);
    // The run would treat it as a stop, and end successfully with data left.
    if (reported.code() == StatusCode::kCancelled) {
      return Fault("ends its work as if it had been asked to stop, and nobody has asked: " + reported.message());
    }
    return std::move(reported).Context("data_desc.name: " + who_);
  } catch (...) {
    return FeedThrew(who_);
  }
}

Status CheckedFeed::Fault(const std::string& what) const {
  return InvalidConfig("data_desc.name: " + who_ + " " + what);
}

Status CheckedFeed::Attach(SlotBatch* batch) {
  int rows = 0;
  MR_TRY(Guarded([&] {
    Status attached = feed_->Attach(batch);
    rows = feed_->rows();
    return attached;
  }));
  if (rows != 0) return Fault("counts " + std::to_string(rows) + " rows in a new batch");
  batch_ = batch;
  rows_ = 0;
  return Status::Ok();
}

Status CheckedFeed::Detach() {
  CHECK(batch_ != nullptr) << who_ << " fills no batch";
  MR_TRY(Guarded([&] { return feed_->Detach(); }));
  MR_TRY(CheckColumns());
  batch_ = nullptr;
  return Status::Ok();
}

Result<LineResult> CheckedFeed::ParseLine(std::string_view line) {
  is_own_error_ = false;
  LineResult result = LineResult::kBlank;
  int rows = 0;
  bool has_reason = true;
  MR_TRY(Guarded([&]() -> Status {
    MR_ASSIGN(result, feed_->ParseLine(line));
    rows = feed_->rows();
    if (result != LineResult::kBad) return Status::Ok();
    has_reason = !feed_->error().message.empty() || !feed_->error().expectation.empty();
    return Status::Ok();
  }));
  const int more = result == LineResult::kRow ? 1 : 0;
  if (rows != rows_ + more && rows != rows_) {
    return Fault("counts " + std::to_string(rows) + " rows behind a line that gave " + (more == 1 ? "one" : "none") +
                 " to " + std::to_string(rows_));
  }
  // Not a bad line, which a job can skip: values of the unfinished row would shift into the next one.
  if (rows != rows_ + more) return Fault("says that it made a row, and made none");
  if (result != LineResult::kRow && result != LineResult::kBlank && result != LineResult::kBad) {
    return Fault("gave the result " + std::to_string(static_cast<int>(result)) + ", which there is not");
  }
  rows_ = rows;
  if (!has_reason) {
    is_own_error_ = true;
    own_error_ = LineError();
    own_error_.kind = LineErrorKind::kRefused;
    own_error_.message = who_ + " refuses the line and gives no reason";
  }
  return result;
}

Status CheckedFeed::CheckColumns() const {
  if (batch_->rows() != rows_) {
    return Fault("made " + std::to_string(rows_) + " rows and handed on " + std::to_string(batch_->rows()));
  }
  if (rows_ == 0) return Status::Ok();
  const auto rows = static_cast<size_t>(rows_);
  for (const SlotSpec& slot : schema_->used()) {
    const size_t values = slot.type == SlotType::kUint64 ? batch_->ids(slot.id).size() : batch_->floats(slot.id).size();
    const auto width = static_cast<size_t>(std::max(slot.width, 0));
    if (slot.is_dense ? values == rows * width : CutsIntoRows(batch_->offsets(slot.id), rows, values)) continue;
    return Fault("gave slot \"" + slot.name + "\" " + std::to_string(values) + " values in " + std::to_string(rows) +
                 (rows == 1 ? " row" : " rows") +
                 (slot.is_dense ? " of " + std::to_string(width) : ", which its offsets do not cut into rows"));
  }
  return Status::Ok();
}

}  // namespace millrace
