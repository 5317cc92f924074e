#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "batch/slot_batch.h"

namespace millrace {

/// Appends rows to the columns of a SlotBatch.
///
///     sink.Attach(batch);  parser.ParseLine(line, sink) ... until sink.rows() is the batch size;  sink.Detach();
///
/// A bad line leaves no trace. Between Attach and Detach only the sink may use the batch. One thread; allocates when a
/// column must grow.
class ColumnSink {
 public:
  explicit ColumnSink(const SlotSchema& schema);

  /// Starts with an empty batch.
  void Attach(SlotBatch* batch);
  bool attached() const { return batch_ != nullptr; }
  int rows() const { return rows_; }
  /// Trims the columns to the written size and sets the batch's rows.
  void Detach();

  // Called by parsers, for one row: BeginRow, texts, slots in SlotId order, then EndRow or Rollback.
  void BeginRow() {
    if (rows_ + 2 > offsets_room_) [[unlikely]]
      GrowOffsets();
  }
  void SetInsId(std::string_view text);
  void SetContent(std::string_view text);
  /// Returns space for `count` values of a slot; End... sets their actual end.
  uint64_t* BeginIds(SlotId slot, size_t count) {
    Cursor& cursor = cursors_[static_cast<size_t>(slot)];
    if (cursor.room - cursor.used < count) [[unlikely]]
      GrowIds(cursor, count);
    return cursor.ids + cursor.used;
  }
  void EndIds(SlotId slot, const uint64_t* end) {
    Cursor& cursor = cursors_[static_cast<size_t>(slot)];
    EndSlot(cursor, static_cast<size_t>(end - cursor.ids));
  }
  /// BeginIds, one id, EndIds.
  void PutOneId(SlotId slot, uint64_t id) {
    Cursor& cursor = cursors_[static_cast<size_t>(slot)];
    if (cursor.used == cursor.room) [[unlikely]]
      GrowIds(cursor, 1);
    cursor.ids[cursor.used] = id;
    EndSlot(cursor, cursor.used + 1);
  }
  float* BeginFloats(SlotId slot, size_t count) {
    Cursor& cursor = cursors_[static_cast<size_t>(slot)];
    if (cursor.room - cursor.used < count) [[unlikely]]
      GrowFloats(cursor, count);
    return cursor.floats + cursor.used;
  }
  void EndFloats(SlotId slot, const float* end) {
    Cursor& cursor = cursors_[static_cast<size_t>(slot)];
    EndSlot(cursor, static_cast<size_t>(end - cursor.floats));
  }
  void EndRow() { ++rows_; }
  void Rollback();

 private:
  static constexpr size_t kSparse = SIZE_MAX;

  struct Cursor {
    SlotColumn* column = nullptr;
    uint64_t* ids = nullptr;
    float* floats = nullptr;
    uint32_t* offsets = nullptr;
    size_t used = 0;
    size_t room = 0;
    size_t width = kSparse;  ///< values per row of a dense slot
  };
  void EndSlot(Cursor& cursor, size_t used) const {
    cursor.used = used;
    if (cursor.width == kSparse) cursor.offsets[rows_ + 1] = static_cast<uint32_t>(used);
  }
  void GrowIds(Cursor& cursor, size_t count);
  void GrowFloats(Cursor& cursor, size_t count);
  void GrowOffsets();

  std::vector<Cursor> cursors_;
  SlotBatch* batch_ = nullptr;
  int rows_ = 0;
  int offsets_room_ = 0;
};

}  // namespace millrace
