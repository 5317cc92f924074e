#include "core/line_blocks.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace millrace {

void LineBlock::Reserve(size_t bytes, size_t filled) {
  if (capacity >= bytes) return;
  auto grown = std::make_unique_for_overwrite<char[]>(bytes + kPadding);
  if (filled > 0) std::memcpy(grown.get(), data.get(), filled);
  data = std::move(grown);
  capacity = bytes;
}

uint64_t CountLines(std::string_view text) {
  // Byte lanes can hold sums of at most 255 rounds, which lets the compiler use whole vectors.
  constexpr size_t kCounters = 64;
  constexpr size_t kRun = kCounters * 255;
  uint64_t lines = 0;
  const char* at = text.data();
  size_t rest = text.size();
  while (rest >= kCounters) {
    const size_t run = std::min(rest, kRun) / kCounters * kCounters;
    uint8_t sums[kCounters] = {};
    for (size_t i = 0; i < run; i += kCounters) {
      for (size_t lane = 0; lane < kCounters; ++lane) {
        sums[lane] = static_cast<uint8_t>(sums[lane] + (at[i + lane] == '\n' ? 1 : 0));
      }
    }
    for (const uint8_t sum : sums) lines += sum;
    at += run;
    rest -= run;
  }
  for (size_t i = 0; i < rest; ++i) lines += at[i] == '\n' ? 1 : 0;
  return lines;
}

LineBlockReader::LineBlockReader(std::unique_ptr<ByteSource> source, uint32_t file, LineLimit limit, size_t block_size)
    : BlockReader("line"),
      source_(std::move(source)),
      file_(file),
      limit_(std::move(limit)),
      block_size_(std::max<size_t>(block_size, 1)) {}

Result<bool> LineBlockReader::Next(LineBlock& block, const std::stop_token& stop, Fill fill) {
  if (!failure_.ok()) return failure_;
  if (at_end_) return false;
  block.Reserve(std::max(block_size_, broken_size_ + 1), 0);
  size_t filled = broken_size_;
  if (broken_size_ > 0) std::memcpy(block.data.get(), broken_.get(), broken_size_);
  broken_size_ = 0;
  size_t text_size = 0;  // up to and including the last '\n'
  uint64_t added = 0;    // bytes not in the file
  Clock::time_point handed_on_by = Clock::time_point::max();
  for (;;) {
    if (filled == block.capacity) {
      if (text_size > 0) break;
      if (filled > limit_.bytes) {
        failure_ = BadData("line " + std::to_string(lines_ + 1) + " is longer than " + std::to_string(limit_.bytes) +
                           " bytes; is this text? " + limit_.advice);
        names_its_line_ = true;
        return failure_;
      }
      // A line longer than the block. With its '\n', the longest allowed line just fits.
      block.Reserve(std::min(2 * block.capacity, limit_.bytes + 1), filled);
    }
    Result<size_t> read = source_->Read({block.data.get() + filled, block.capacity - filled}, stop);
    if (!read.ok()) {
      failure_ = std::move(read).status();
      if (failure_.code() == StatusCode::kCancelled) return failure_;
      if (text_size > 0) break;
      ends_in_a_line_ = filled > 0;
      return failure_;
    }
    if (*read == 0) {
      at_end_ = true;
      if (filled == 0) return false;
      if (text_size < filled) {
        if (filled == block.capacity) block.Reserve(filled + 1, filled);
        block.data[filled++] = '\n';
        text_size = filled;
        added = 1;
      }
      break;
    }
    const void* last = ::memrchr(block.data.get() + filled, '\n', *read);
    if (last != nullptr) text_size = static_cast<size_t>(static_cast<const char*>(last) - block.data.get()) + 1;
    filled += *read;
    // A file fills the block in one read, a command in many; also take what its pipe contains.
    if (text_size == 0) continue;
    if (filled >= block_size_) break;
    if (fill == Fill::kUntilFull) continue;
    const Clock::time_point now = Clock::now();
    handed_on_by = std::min(handed_on_by, now + kMoment);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(handed_on_by - now);
    if (!source_->WaitReadable(std::max(left, std::chrono::milliseconds(0)))) break;
  }
  Emit(block, filled, text_size);
  ends_in_a_line_ = !failure_.ok() && broken_size_ > 0;
  bytes_ -= added;
  return true;
}

void LineBlockReader::Emit(LineBlock& block, size_t filled, size_t text_size) {
  broken_size_ = filled - text_size;
  if (broken_size_ > broken_capacity_) {
    broken_capacity_ = 2 * broken_size_;
    broken_ = std::make_unique_for_overwrite<char[]>(broken_capacity_);
  }
  if (broken_size_ > 0) std::memcpy(broken_.get(), block.data.get() + text_size, broken_size_);
  std::memset(block.data.get() + text_size, 0, LineBlock::kPadding);
  block.size = text_size;
  block.has_sizes = false;
  block.file = file_;
  block.first_line = lines_ + 1;
  block.lines = CountLines(block.text());
  block.offset = bytes_;
  lines_ += block.lines;
  bytes_ += text_size;
}

}  // namespace millrace
