#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

#include "core/line_blocks.h"
#include "reader/record_stream.h"

namespace millrace {

/// Gathers the records of a binary file in blocks of about 1 MiB, or `block_size` (LineBlock::has_sizes); a longer
/// frame makes a longer block, and of a slow source the records that are there do not wait long for others. What is no
/// record, or is cut off, is kBadData "record 17: byte 2040: ...": behind it nothing says where the next one begins.
///
/// One thread at a time.
class RecordBlockReader final : public BlockReader {
 public:
  /// `file` goes into every block.
  RecordBlockReader(std::unique_ptr<RecordSource> records, uint32_t file, size_t block_size = kBlockSize)
      : BlockReader("record"), source_(std::move(records)), file_(file), block_size_(block_size) {}

  Result<bool> Next(LineBlock& block, const std::stop_token& stop, Fill fill) override;

 private:
  /// Puts the records of a frame behind the first `filled` bytes; how many bytes there are then.
  size_t Append(const RecordFrame& frame, LineBlock& block, size_t filled) const;
  /// False when others have waited long enough for the next frame.
  bool AwaitFrame(std::chrono::steady_clock::time_point* handed_on_by);
  Status Describe(Status failure, uint64_t record);

  const std::unique_ptr<RecordSource> source_;
  uint32_t file_;
  size_t block_size_;
  bool at_end_ = false;
};

}  // namespace millrace
