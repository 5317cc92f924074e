#include "datafeed/record_blocks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

namespace millrace {

using Clock = std::chrono::steady_clock;

Result<bool> RecordBlockReader::Next(LineBlock& block, const std::stop_token& stop, Fill fill) {
  if (!failure_.ok()) return failure_;
  if (at_end_) return false;
  const uint64_t offset = source_->bytes();
  size_t filled = 0;
  uint64_t records = 0;
  Clock::time_point handed_on_by = Clock::time_point::max();
  while (filled < block_size_) {
    if (records > 0 && fill == Fill::kForAMoment && !AwaitFrame(&handed_on_by)) break;
    RecordFrame frame;
    const Result<bool> more = source_->Next(&frame, stop);
    if (!more.ok()) failure_ = Describe(more.status(), lines_ + records + 1);
    if (!failure_.ok() && (records == 0 || failure_.code() == StatusCode::kCancelled)) return failure_;
    if (!failure_.ok()) break;
    at_end_ = !*more;
    if (at_end_) break;
    filled = Append(frame, block, filled);
    records += frame.records;
  }
  if (records == 0 && at_end_) return false;
  block.Reserve(1, filled);
  std::memset(block.data.get() + filled, 0, LineBlock::kPadding);
  block.size = filled;
  block.has_sizes = true;
  block.file = file_;
  block.first_line = lines_ + 1;
  block.lines = records;
  block.offset = offset;
  lines_ += records;
  bytes_ = source_->bytes();
  return true;
}

bool RecordBlockReader::AwaitFrame(Clock::time_point* handed_on_by) {
  if (source_->HasNext()) return true;
  const Clock::time_point now = Clock::now();
  *handed_on_by = std::min(*handed_on_by, now + kMoment);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*handed_on_by - now);
  return source_->WaitReadable(std::max(left, std::chrono::milliseconds(0)));
}

size_t RecordBlockReader::Append(const RecordFrame& frame, LineBlock& block, size_t filled) const {
  const bool has_sizes = frame.has_sizes;
  const size_t end = filled + (has_sizes ? 0 : sizeof(uint32_t)) + frame.body.size();
  if (end > block.capacity) block.Reserve(std::max({block_size_, 2 * block.capacity, end}), filled);
  char* to = block.data.get() + filled;
  if (!has_sizes) {
    const auto size = static_cast<uint32_t>(frame.body.size());
    std::memcpy(to, &size, sizeof(size));
    to += sizeof(size);
  }
  frame.body.copy(to, frame.body.size());
  return end;
}

Status RecordBlockReader::Describe(Status failure, uint64_t record) {
  ends_in_a_line_ = source_->is_within_frame();
  names_its_line_ = source_->is_damaged();
  if (!names_its_line_) return failure;
  return BadData("record " + std::to_string(record) + ": " + failure.message());
}

}  // namespace millrace
