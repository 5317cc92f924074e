#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/uninitialized_vector.h"
#include "datafeed/packed_rows.h"
#include "datafeed/row_layout.h"
#include "datafeed/varint.h"

namespace millrace {

/// Packs rows: encodes each into a buffer, then appends it to a PackedRows. A bad line leaves no trace.
///
/// One thread; allocates when the buffer or the list of handles grows, and a slab every few MiB.
class RowSink {
 public:
  /// `layout` and `rows` must outlive the sink.
  RowSink(const RowLayout& layout, PackedRows* rows);

  /// Starts a block: rows of this file follow in line order. Clears handles().
  void BeginBlock(uint32_t file);
  /// Sets the line of the next row.
  void set_line(uint64_t line) { line_ = line; }
  /// Rows since BeginBlock.
  const std::vector<RowHandle>& handles() const { return handles_; }

  // Called by parsers, for one row: BeginRow, texts, slots in SlotId order, then EndRow or Rollback.
  void BeginRow() {
    control_ = scratch_.data();
    out_ = control_ + layout_->control_bytes;
  }
  void SetInsId(std::string_view text) { PutText(text); }
  void SetContent(std::string_view text) { PutText(text); }
  uint64_t* BeginIds(SlotId, size_t count) {
    if (ids_.size() < count) [[unlikely]]
      ids_.resize(count * 2);
    return ids_.data();
  }
  void EndIds(SlotId slot, const uint64_t* end) {
    const uint64_t* id = ids_.data();
    const auto count = static_cast<size_t>(end - id);
    const bool dense = layout_->slots[static_cast<size_t>(slot)].kind == RowLayout::Kind::kDenseIds;
    Reserve(count * sizeof(uint64_t) + sizeof(uint64_t));
    uint64_t all = 0;
    for (size_t i = 0; i < count; ++i) all |= id[i];
    const size_t id_size = IdSize(all);
    PutControl(dense ? 0 : count, id_size - 1);
    uint8_t* out = out_;
    for (; id != end; ++id) {
      // Writes whole words; the next one overwrites the excess bytes.
      std::memcpy(out, id, sizeof(uint64_t));
      out += id_size;
    }
    out_ = out;
  }
  /// BeginIds, one id, EndIds.
  void PutOneId(SlotId slot, uint64_t id) {
    const bool dense = layout_->slots[static_cast<size_t>(slot)].kind == RowLayout::Kind::kDenseIds;
    Reserve(sizeof(uint64_t));
    const size_t id_size = IdSize(id);
    uint8_t* const out = out_;
    out_ = out + id_size;
    *control_++ = static_cast<uint8_t>((dense ? 0U : 1U << 3) | (id_size - 1));
    std::memcpy(out, &id, sizeof(id));
  }
  float* BeginFloats(SlotId, size_t count) {
    if (floats_.size() < count) [[unlikely]]
      floats_.resize(count * 2);
    return floats_.data();
  }
  void EndFloats(SlotId slot, const float* end) {
    const auto count = static_cast<size_t>(end - floats_.data());
    const bool dense = layout_->slots[static_cast<size_t>(slot)].kind == RowLayout::Kind::kDenseFloats;
    Reserve(count * sizeof(float));
    if (!dense) PutControl(count, 0);
    if (count > 0) std::memcpy(out_, floats_.data(), count * sizeof(float));
    out_ += count * sizeof(float);
  }
  void EndRow() {
    handles_.push_back(writer_.Append(line_, {scratch_.data(), static_cast<size_t>(out_ - scratch_.data())}));
  }
  void Rollback() {}

 private:
  static constexpr size_t kFirstScratch = 4096;

  static size_t IdSize(uint64_t id) { return (static_cast<size_t>(std::bit_width(id | 1)) + 7) / 8; }

  void PutText(std::string_view text);
  void PutControl(size_t count, size_t size_code) {
    const size_t short_count = std::min<size_t>(count, RowLayout::kLongCount);
    *control_++ = static_cast<uint8_t>(short_count << 3 | size_code);
    if (short_count == RowLayout::kLongCount) [[unlikely]]
      out_ = PutVarint(out_, count);
  }
  /// Ensures space for a count and `bytes` more.
  void Reserve(size_t bytes) {
    if (static_cast<size_t>(scratch_.data() + scratch_.size() - out_) < kMaxVarintSize + bytes) [[unlikely]]
      Grow(bytes);
  }
  void Grow(size_t bytes);

  const RowLayout* layout_;
  PackedRowWriter writer_;
  uint64_t line_ = 0;
  std::vector<RowHandle> handles_;
  UninitializedVector<uint64_t> ids_;     ///< of the current slot
  UninitializedVector<float> floats_;     ///< of the current slot
  UninitializedVector<uint8_t> scratch_;  ///< the current row
  uint8_t* control_ = nullptr;            ///< position in scratch_ for the next control byte
  uint8_t* out_ = nullptr;                ///< position in scratch_ for the next byte of a string or value
};

}  // namespace millrace
