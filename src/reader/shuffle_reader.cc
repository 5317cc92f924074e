#include "reader/shuffle_reader.h"

#include <utility>

#include "core/hash.h"
#include "core/shuffle.h"

namespace millrace {

ShuffleReader::ShuffleReader(std::unique_ptr<ReaderBase> reader, size_t buffer_size, uint64_t seed)
    : DecoratedReader(std::move(reader)), seed_(seed), buffer_size_(buffer_size) {}

Status ShuffleReader::Fill(const std::stop_token& stop) {
  size_t filled = 0;
  for (; filled < buffer_size_; ++filled) {
    reader().Expect(buffer_size_ - filled);
    if (filled == buffer_.size()) buffer_.emplace_back();
    MR_ASSIGN(const bool more, reader().ReadNext(&buffer_[filled], stop));
    if (!more) break;
  }
  order_.resize(filled);
  for (size_t i = 0; i < filled; ++i) order_[i] = i;
  Shuffle(order_, Mix64(Mix64(seed_, pass()), fill_++));
  return Status::Ok();
}

Result<bool> ShuffleReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  if (order_.empty()) MR_TRY(Fill(stop));
  if (order_.empty()) return false;
  std::swap(*out, buffer_[order_.back()]);
  order_.pop_back();
  return true;
}

Status ShuffleReader::Restart() {
  order_.clear();
  fill_ = 0;
  return reader().StartPass(pass());
}

}  // namespace millrace
