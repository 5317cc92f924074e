#include "datafeed/column_sink.h"

#include <glog/logging.h>

#include <algorithm>
#include <climits>

namespace millrace {
namespace {

constexpr size_t kFirstRoom = 64;

size_t GrownRoom(size_t room, size_t needed) { return std::max({kFirstRoom, room * 2, needed}); }

}  // namespace

ColumnSink::ColumnSink(const SlotSchema& schema) : cursors_(static_cast<size_t>(schema.used_count())) {
  for (const SlotSpec& slot : schema.used()) {
    cursors_[static_cast<size_t>(slot.id)].width = slot.is_dense ? static_cast<size_t>(slot.width) : kSparse;
  }
}

void ColumnSink::Attach(SlotBatch* batch) {
  CHECK(batch_ == nullptr) << "the sink still fills another batch";
  CHECK_EQ(batch->rows(), 0) << "the sink fills empty batches alone";
  batch_ = batch;
  rows_ = 0;
  for (size_t i = 0; i < cursors_.size(); ++i) {
    Cursor& cursor = cursors_[i];
    cursor.column = &batch->column(static_cast<SlotId>(i));
    // Warm columns offer their full capacity; resizing within it neither allocates nor writes.
    cursor.column->ids.resize(cursor.column->ids.capacity());
    cursor.column->floats.resize(cursor.column->floats.capacity());
    cursor.ids = cursor.column->ids.data();
    cursor.floats = cursor.column->floats.data();
    cursor.used = 0;
    cursor.room = std::max(cursor.column->ids.size(), cursor.column->floats.size());
  }
  offsets_room_ = 0;
}

void ColumnSink::Detach() {
  CHECK(batch_ != nullptr) << "the sink fills no batch";
  const auto rows = static_cast<size_t>(rows_);
  for (Cursor& cursor : cursors_) {
    SlotColumn& column = *cursor.column;
    column.ids.resize(std::min(cursor.used, column.ids.size()));
    column.floats.resize(std::min(cursor.used, column.floats.size()));
    if (cursor.width == kSparse) column.offsets.resize(rows + 1);
  }
  batch_->set_rows(rows_);
  batch_ = nullptr;
}

void ColumnSink::SetInsId(std::string_view text) {
  std::vector<std::string>& texts = batch_->mutable_ins_ids();
  if (texts.size() <= static_cast<size_t>(rows_)) texts.resize(static_cast<size_t>(rows_) + 1);
  texts[static_cast<size_t>(rows_)].assign(text);
}

void ColumnSink::SetContent(std::string_view text) {
  std::vector<std::string>& texts = batch_->mutable_contents();
  if (texts.size() <= static_cast<size_t>(rows_)) texts.resize(static_cast<size_t>(rows_) + 1);
  texts[static_cast<size_t>(rows_)].assign(text);
}

void ColumnSink::Rollback() {
  for (Cursor& cursor : cursors_) {
    cursor.used = cursor.width == kSparse ? cursor.offsets[rows_] : static_cast<size_t>(rows_) * cursor.width;
  }
}

void ColumnSink::GrowIds(Cursor& cursor, size_t count) {
  cursor.column->ids.resize(GrownRoom(cursor.room, cursor.used + count));
  cursor.ids = cursor.column->ids.data();
  cursor.room = cursor.column->ids.size();
}

void ColumnSink::GrowFloats(Cursor& cursor, size_t count) {
  cursor.column->floats.resize(GrownRoom(cursor.room, cursor.used + count));
  cursor.floats = cursor.column->floats.data();
  cursor.room = cursor.column->floats.size();
}

void ColumnSink::GrowOffsets() {
  size_t room = 0;
  for (Cursor& cursor : cursors_) {
    if (cursor.width != kSparse) continue;
    UninitializedVector<uint32_t>& offsets = cursor.column->offsets;
    const size_t needed = static_cast<size_t>(rows_) + 2;
    offsets.resize(std::max(offsets.capacity(), GrownRoom(offsets.size(), needed)));
    cursor.offsets = offsets.data();
    cursor.offsets[0] = 0;
    room = room == 0 ? offsets.size() : std::min(room, offsets.size());
  }
  // Without sparse slots there is no limit.
  offsets_room_ = room == 0 ? INT_MAX : static_cast<int>(room);
}

}  // namespace millrace
