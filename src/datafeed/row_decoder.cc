#include "datafeed/row_decoder.h"

#include <glog/logging.h>

#include <cstring>
#include <string_view>

#include "datafeed/column_sink.h"
#include "datafeed/row_sink.h"
#include "datafeed/varint.h"

namespace millrace {
namespace {

// By id size minus one.
constexpr uint64_t kIdMasks[] = {0xff,         0xffff,         0xffffff,         0xffffffff,
                                 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, 0xffffffffffffffff};

// Reads ids as whole words and masks them, because branching on their size, which differs from row to row, is slow.
const uint8_t* ReadIds(const uint8_t* at, uint8_t size_code, uint64_t count, uint64_t* out) {
  const uint64_t mask = kIdMasks[size_code];
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    out[i] = word & mask;
    at += size_code + 1;
  }
  return at;
}

const uint8_t* ReadText(const uint8_t* at, std::string_view* text) {
  uint64_t size = 0;
  at = GetVarint(at, &size);
  *text = {reinterpret_cast<const char*>(at), size};
  return at + size;
}

/// Position of a row's control bytes, after its line and strings.
const uint8_t* ControlOf(const RowLayout& layout, const uint8_t* encoded) {
  std::string_view text;
  if (layout.has_ins_id) encoded = ReadText(encoded, &text);
  if (layout.has_content) encoded = ReadText(encoded, &text);
  return encoded;
}

/// Walks over a slot's values from `at` and advances *control. Returns their start and count.
struct SlotValues {
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
  uint64_t count = 0;
};
SlotValues WalkSlot(const RowLayout::SlotLayout& slot, const uint8_t* at, const uint8_t** control) {
  using Kind = RowLayout::Kind;
  if (slot.kind == Kind::kDenseFloats) return {at, at + slot.width * sizeof(float), slot.width};
  const uint8_t code = *(*control)++;
  uint64_t count = slot.width;
  if (slot.kind != Kind::kDenseIds) {
    count = code >> 3;
    if (count == RowLayout::kLongCount) at = GetVarint(at, &count);
  }
  const size_t size = slot.kind == Kind::kFloats ? sizeof(float) : (code & 7U) + 1;
  return {at, at + count * size, count};
}

}  // namespace

template <class Sink>
void DecodeRow(const RowLayout& layout, const uint8_t* row, Sink& sink) {
  sink.BeginRow();
  uint64_t line_delta = 0;
  const uint8_t* at = GetVarint(row, &line_delta);
  std::string_view text;
  if (layout.has_ins_id) {
    at = ReadText(at, &text);
    sink.SetInsId(text);
  }
  if (layout.has_content) {
    at = ReadText(at, &text);
    sink.SetContent(text);
  }
  const uint8_t* control = at;
  at += layout.control_bytes;
  SlotId id = 0;
  for (const RowLayout::SlotLayout& slot : layout.slots) {
    if (slot.kind == RowLayout::Kind::kDenseFloats) {
      float* const out = sink.BeginFloats(id, slot.width);
      std::memcpy(out, at, slot.width * sizeof(float));
      at += slot.width * sizeof(float);
      sink.EndFloats(id++, out + slot.width);
      continue;
    }
    const uint8_t code = *control++;
    uint64_t count = slot.width;
    if (slot.kind != RowLayout::Kind::kDenseIds) {
      count = code >> 3;
      if (count == RowLayout::kLongCount) at = GetVarint(at, &count);
    }
    if (slot.kind == RowLayout::Kind::kFloats) {
      float* const out = sink.BeginFloats(id, count);
      if (count > 0) std::memcpy(out, at, count * sizeof(float));
      at += count * sizeof(float);
      sink.EndFloats(id++, out + count);
    } else {
      uint64_t* const out = sink.BeginIds(id, count);
      at = ReadIds(at, code & 7, count, out);
      sink.EndIds(id++, out + count);
    }
  }
  sink.EndRow();
}

template void DecodeRow(const RowLayout&, const uint8_t*, ColumnSink&);
template void DecodeRow(const RowLayout&, const uint8_t*, RowSink&);
template void DecodeRow(const RowLayout&, const uint8_t*, PickedSlots&);

std::optional<uint64_t> FirstIdOf(const RowLayout& layout, const uint8_t* row, SlotId slot) {
  uint64_t line_delta = 0;
  const uint8_t* control = ControlOf(layout, GetVarint(row, &line_delta));
  const uint8_t* at = control + layout.control_bytes;
  for (SlotId id = 0; id < slot; ++id) at = WalkSlot(layout.slots[static_cast<size_t>(id)], at, &control).end;
  const auto size_code = static_cast<uint8_t>(*control & 7);
  const SlotValues values = WalkSlot(layout.slots[static_cast<size_t>(slot)], at, &control);
  if (values.count == 0) return std::nullopt;
  uint64_t first = 0;
  ReadIds(values.begin, size_code, 1, &first);
  return first;
}

std::span<const uint8_t> EncodedRow(const RowLayout& layout, const uint8_t* row) {
  uint64_t line_delta = 0;
  const uint8_t* const begin = GetVarint(row, &line_delta);
  const uint8_t* control = ControlOf(layout, begin);
  const uint8_t* at = control + layout.control_bytes;
  for (const RowLayout::SlotLayout& slot : layout.slots) at = WalkSlot(slot, at, &control).end;
  return {begin, at};
}

std::string_view InsIdOf(const RowLayout& layout, const uint8_t* row) {
  CHECK(layout.has_ins_id) << "rows of this layout have no names";
  uint64_t line_delta = 0;
  std::string_view text;
  ReadText(GetVarint(row, &line_delta), &text);
  return text;
}

}  // namespace millrace
