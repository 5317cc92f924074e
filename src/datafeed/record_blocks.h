#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

#include "core/line_blocks.h"
#include "reader/record_stream.h"

namespace millrace {

/// Collects the records of a binary file into blocks of about 1 MiB or `block_size` (LineBlock::has_sizes). A longer
/// frame makes a longer block; with a slow source, available records are returned soon. A truncated or invalid record
/// fails with kBadData "record 17: byte 2040: ...", because the next one cannot be found.
///
/// One thread at a time.
class RecordBlockReader final : public BlockReader {
 public:
  /// `file` is copied to every block.
  RecordBlockReader(std::unique_ptr<RecordSource> records, uint32_t file, size_t block_size = kBlockSize)
      : BlockReader("record"), source_(std::move(records)), file_(file), block_size_(block_size) {}

  Result<bool> Next(LineBlock& block, const std::stop_token& stop, Fill fill) override;

 private:
  /// Appends the records of a frame after the first `filled` bytes; returns the new size.
  size_t Append(const RecordFrame& frame, LineBlock& block, size_t filled) const;
  /// False if the next frame takes too long while other records wait.
  bool AwaitFrame(std::chrono::steady_clock::time_point* handed_on_by);
  Status Describe(Status failure, uint64_t record);

  const std::unique_ptr<RecordSource> source_;
  uint32_t file_;
  size_t block_size_;
  bool at_end_ = false;
};

}  // namespace millrace
