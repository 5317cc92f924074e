#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "datafeed/column_sink.h"
#include "datafeed/row_layout.h"

namespace millrace {

/// Passes some slots of a row to a ColumnSink; used between that sink's BeginRow and EndRow to combine a row from
/// several. The instance with `taken` false also passes the strings.
class PickedSlots {
 public:
  /// Passes slots whose entry in `picked` (by SlotId) equals `taken`. Keeps references.
  PickedSlots(const std::vector<bool>& picked, bool taken, ColumnSink& sink)
      : picked_(&picked), taken_(taken), sink_(&sink) {}

  void BeginRow() {}
  void EndRow() {}
  void SetInsId(std::string_view text) {
    if (!taken_) sink_->SetInsId(text);
  }
  void SetContent(std::string_view text) {
    if (!taken_) sink_->SetContent(text);
  }
  uint64_t* BeginIds(SlotId slot, size_t count) {
    if (IsTaken(slot)) return sink_->BeginIds(slot, count);
    if (ids_.size() < count) ids_.resize(count);
    return ids_.data();
  }
  void EndIds(SlotId slot, const uint64_t* end) {
    if (IsTaken(slot)) sink_->EndIds(slot, end);
  }
  float* BeginFloats(SlotId slot, size_t count) {
    if (IsTaken(slot)) return sink_->BeginFloats(slot, count);
    if (floats_.size() < count) floats_.resize(count);
    return floats_.data();
  }
  void EndFloats(SlotId slot, const float* end) {
    if (IsTaken(slot)) sink_->EndFloats(slot, end);
  }

 private:
  bool IsTaken(SlotId slot) const { return (*picked_)[static_cast<size_t>(slot)] == taken_; }

  const std::vector<bool>* picked_;
  bool taken_;
  ColumnSink* sink_;
  std::vector<uint64_t> ids_;  ///< of slots that are not passed
  std::vector<float> floats_;  ///< of slots that are not passed
};

/// The name of a row, if its layout has names; points into the row.
std::string_view InsIdOf(const RowLayout& layout, const uint8_t* row);
/// The first id of an id slot; nullopt if the slot is empty.
std::optional<uint64_t> FirstIdOf(const RowLayout& layout, const uint8_t* row, SlotId slot);
/// The bytes given to PackedRowWriter::Append, without the line.
std::span<const uint8_t> EncodedRow(const RowLayout& layout, const uint8_t* row);

/// Decodes a row of a PackedRows into a sink (ColumnSink, RowSink, PickedSlots), as parsing its line would fill it. The
/// layout must be the one used for encoding; PackedRows::kPadding bytes after the row are readable. Only the sink
/// allocates.
template <class Sink>
void DecodeRow(const RowLayout& layout, const uint8_t* row, Sink& sink);

}  // namespace millrace
