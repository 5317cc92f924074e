#include "datafeed/row_sink.h"

namespace millrace {

RowSink::RowSink(const RowLayout& layout, PackedRows* rows)
    : layout_(&layout), writer_(rows), scratch_(layout.control_bytes + kFirstScratch) {}

void RowSink::BeginBlock(uint32_t file) {
  writer_.BeginFile(file);
  handles_.clear();
}

// Strings precede the control bytes, which move back.
void RowSink::PutText(std::string_view text) {
  Reserve(text.size());
  uint8_t* const bytes = PutVarint(control_, text.size());
  std::memcpy(bytes, text.data(), text.size());
  control_ = bytes + text.size();
  out_ = control_ + layout_->control_bytes;
}

void RowSink::Grow(size_t bytes) {
  const auto control = control_ - scratch_.data();
  const auto out = out_ - scratch_.data();
  scratch_.resize(std::max(static_cast<size_t>(out) + kMaxVarintSize + bytes, scratch_.size() * 2));
  control_ = scratch_.data() + control;
  out_ = scratch_.data() + out;
}

}  // namespace millrace
