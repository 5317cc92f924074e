#include "datafeed/row_sink.h"

namespace millrace {

RowSink::RowSink(const RowLayout& layout, PackedRows* rows) : layout_(&layout), writer_(rows) {}

void RowSink::BeginBlock(uint32_t file) {
  writer_.BeginFile(file);
  handles_.clear();
}

void RowSink::PutText(std::string_view text) {
  if (scratch_.size() - at_ < kMaxVarintSize + text.size()) Grow(text.size());
  const uint8_t* const end = PutVarint(scratch_.data() + at_, text.size());
  at_ = static_cast<size_t>(end - scratch_.data());
  std::memcpy(scratch_.data() + at_, text.data(), text.size());
  at_ += text.size();
}

void RowSink::PutLongCount(size_t count) {
  const uint8_t* const end = PutVarint(scratch_.data() + at_, count);
  at_ = static_cast<size_t>(end - scratch_.data());
}

void RowSink::Grow(size_t bytes) {
  scratch_.resize(std::max(at_ + layout_->control_bytes + kMaxVarintSize + bytes, scratch_.size() * 2));
}

}  // namespace millrace
