#include "datafeed/format_feed.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "datafeed/put_row.h"
#include "datafeed/row_sink.h"
#include "reader/lod_tensor.h"

namespace millrace {

Status FormatFeed::Attach(SlotBatch* batch) {
  sink_.Attach(batch);
  return Status::Ok();
}

Status FormatFeed::Detach() {
  sink_.Detach();
  return Status::Ok();
}

template <class Sink>
LineResult FormatFeed::ReadInto(std::string_view line, Sink& sink) {
  counted_ = {};
  error_ = {};
  sink.BeginRow();
  const LineResult result = Read(line);
  if (result == LineResult::kRow) {
    sink.EndRow();
  } else {
    sink.Rollback();
  }
  if (result != LineResult::kBad) counters_ += counted_;
  return result;
}

Result<LineResult> FormatFeed::ParseLine(std::string_view line) { return ReadInto(line, sink_); }

Result<LineResult> FormatFeed::PackLine(std::string_view line, RowSink& sink) {
  packs_into_ = &sink;
  const LineResult result = ReadInto(line, sink);
  packs_into_ = nullptr;
  return result;
}

bool FormatFeed::Fail(LineErrorKind kind, const std::string& slot, std::string message, size_t column) {
  error_.kind = kind;
  error_.slot = slot;
  error_.message = std::move(message);
  error_.column = column;
  return false;
}

bool FormatFeed::At(size_t column) {
  error_.column = column;
  return false;
}

bool FormatFeed::FailForGood(LineErrorKind kind, const std::string& slot, std::string message, size_t column) {
  error_.ends_reading = true;
  return Fail(kind, slot, std::move(message), column);
}

bool FormatFeed::CheckCount(const SlotSpec& slot, size_t count) {
  if (count == 0 && !options_.allow_empty_slots) {
    return Fail(LineErrorKind::kEmptySlot, slot.name,
                "expected at least one value (empty_slot: ALLOW takes empty slots), found none");
  }
  if (slot.is_dense && count != static_cast<size_t>(slot.width)) {
    return Fail(
        LineErrorKind::kWrongWidth, slot.name,
        "expected " + std::to_string(slot.width) + " values, as its shape says, found " + std::to_string(count));
  }
  if (count == 0) ++counted_.empty_slots;
  return true;
}

bool FormatFeed::Put(const SlotSpec& slot, std::span<const uint64_t> ids) {
  // The usual case: one id in a sparse slot.
  if (ids.size() == 1 && !slot.is_dense && !options_.drop_zeros) [[likely]] {
    if (packs_into_ != nullptr) {
      packs_into_->PutOneId(slot.id, ids[0]);
    } else {
      sink_.PutOneId(slot.id, ids[0]);
    }
    return true;
  }
  if (!CheckCount(slot, ids.size())) return false;
  if (options_.drop_zeros && !slot.is_dense && !ids.empty()) {
    ids_.assign(ids.begin(), ids.end());
    std::erase(ids_, 0U);
    if (ids_.empty()) ids_.push_back(0);
    counted_.zeros_dropped += static_cast<int64_t>(ids.size() - ids_.size());
    ids = ids_;
  }
  if (packs_into_ != nullptr) {
    PutValues(slot.id, ids, *packs_into_);
  } else {
    PutValues(slot.id, ids, sink_);
  }
  return true;
}

bool FormatFeed::Put(const SlotSpec& slot, std::span<const float> floats) {
  if (!CheckCount(slot, floats.size())) return false;
  const auto is_finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(floats.begin(), floats.end(), is_finite)) {
    if (options_.reject_non_finite) {
      return Fail(LineErrorKind::kNonFinite, slot.name,
                  "expected finite values (non_finite: ACCEPT takes others), found NaN or infinite ones");
    }
    counted_.non_finite += static_cast<int64_t>(floats.size()) - std::count_if(floats.begin(), floats.end(), is_finite);
  }
  if (options_.drop_zeros && !slot.is_dense && !floats.empty()) {
    floats_.assign(floats.begin(), floats.end());
    std::erase_if(floats_, [](float value) { return std::fabs(static_cast<double>(value)) < 1e-6; });
    if (floats_.empty()) floats_.push_back(0);
    counted_.zeros_dropped += static_cast<int64_t>(floats.size() - floats_.size());
    floats = floats_;
  }
  if (packs_into_ != nullptr) {
    PutValues(slot.id, floats, *packs_into_);
  } else {
    PutValues(slot.id, floats, sink_);
  }
  return true;
}

bool FormatFeed::PutSigned(const SlotSpec& slot, std::span<const int64_t> ids) {
  const auto negative = std::find_if(ids.begin(), ids.end(), [](int64_t id) { return id < 0; });
  if (negative != ids.end()) {
    return Fail(LineErrorKind::kNegativeId, slot.name,
                "value " + std::to_string(negative - ids.begin() + 1) + " of " + std::to_string(ids.size()) + " is " +
                    std::to_string(*negative) + ", below 0, and no id; " + std::string(kSignedIdAdvice));
  }
  return Put(slot, {reinterpret_cast<const uint64_t*>(ids.data()), ids.size()});
}

}  // namespace millrace
