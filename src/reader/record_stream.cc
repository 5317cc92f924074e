#include "reader/record_stream.h"

#include <algorithm>
#include <span>
#include <utility>

namespace millrace {
namespace {

constexpr size_t kBlock = size_t{256} << 10;
constexpr size_t kLongestHeader = 32;

}  // namespace

RecordStream::RecordStream(std::unique_ptr<ByteSource> source, const Framing& framing, uint64_t most,
                           std::string advice, std::string doubt)
    : source_(std::move(source)),
      framing_(&framing),
      most_(most),
      advice_(std::move(advice)),
      doubt_(std::move(doubt)) {}

Result<bool> RecordStream::Next(RecordFrame* frame, const std::stop_token& stop) {
  MR_ASSIGN(const std::string_view header, Read(framing_->header_size, framing_->header, stop));
  if (header.empty()) return false;
  char copy[kLongestHeader];  // the body may need the space
  const std::string_view kept(copy, header.copy(copy, sizeof(copy)));
  const Result<uint64_t> size = framing_->body_size(kept);
  const std::string doubt = last_ == 0 && (!size.ok() || *size > most_) ? doubt_ : "";
  if (!size.ok()) return Damaged(size.status().message() + doubt);
  if (*size > most_) {
    return Damaged(std::string(framing_->body) + " of " + std::to_string(*size) + " bytes is longer than " +
                   std::to_string(most_) + ". " + advice_ + doubt);
  }
  MR_ASSIGN(frame->body, Read(*size, framing_->body, stop));
  if (frame->body.size() < *size) return Damaged(std::string("the file ends behind ") + framing_->header);
  frame->records = 1;
  frame->has_sizes = framing_->count_records != nullptr;
  if (frame->has_sizes) {
    const Result<uint32_t> records = framing_->count_records(kept, frame->body);
    if (!records.ok()) return Damaged(records.status().message());
    frame->records = *records;
  }
  bytes_ = offset_;
  return true;
}

bool RecordStream::HasNext() const {
  const std::string_view held(buffer_.data() + begin_, end_ - begin_);
  if (held.size() < framing_->header_size) return false;
  const Result<uint64_t> size = framing_->body_size(held.substr(0, framing_->header_size));
  return !size.ok() || *size > most_ || *size <= held.size() - framing_->header_size;
}

Result<std::string_view> RecordStream::Read(uint64_t size, const char* what, const std::stop_token& stop) {
  last_ = offset_;
  while (end_ - begin_ < size) {
    if (begin_ > 0) {
      buffer_.erase(0, begin_);
      end_ -= std::exchange(begin_, 0);
    }
    // Grows as data arrives, because a size in a damaged file is not trusted.
    buffer_.resize(end_ + std::max(kBlock, std::min<size_t>(size, 2 * end_) - std::min<size_t>(size, end_)));
    MR_ASSIGN(const size_t n, source_->Read(std::span(buffer_).subspan(end_), stop));
    end_ += n;
    if (n > 0) continue;
    if (end_ == begin_) return std::string_view();
    return Damaged("the file ends within " + std::string(what) + ": " + std::to_string(size) + " bytes wanted, " +
                   std::to_string(end_ - begin_) + " left");
  }
  const std::string_view bytes(buffer_.data() + begin_, size);
  begin_ += size;
  offset_ += size;
  return bytes;
}

Status RecordStream::Error(const std::string& message) const {
  return BadData("byte " + std::to_string(last_) + ": " + message);
}

Status RecordStream::Damaged(const std::string& message) {
  is_damaged_ = true;
  return Error(message);
}

}  // namespace millrace
