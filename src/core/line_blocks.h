#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/byte_source.h"

namespace millrace {

/// A run of whole lines of one file, in a buffer that is reused from block to block.
///
/// Every line ends in '\n'; a last line without one is given it. kPadding bytes after the text may be read (they are
/// 0), so that a parser can load whole words. Movable; one thread at a time.
struct LineBlock {
  static constexpr size_t kPadding = 64;

  std::string_view text() const { return {data.get(), size}; }

  std::unique_ptr<char[]> data;
  size_t size = 0;
  size_t capacity = 0;      ///< bytes of `data` without the padding
  uint32_t file = 0;        ///< number in the file list
  uint64_t first_line = 1;  ///< number of the first line, from 1
  uint64_t lines = 0;
  uint64_t offset = 0;  ///< bytes of the file (after command and decompression) before the text
};

/// How long a line may be.
struct LineLimit {
  /// What a user may ask for: a block of lines is not made smaller than the one, and the other is what offsets into it
  /// may be.
  static constexpr int64_t kLeast = int64_t{1} << 20;
  static constexpr int64_t kMost = int64_t{1} << 30;

  size_t bytes = size_t{64} << 20;  ///< without the '\n'
  std::string advice;               ///< ends the message about a longer one: what to do about it
};

/// Cuts a source into blocks of about 1 MiB at line ends; a longer line makes a longer block, and of a source that is
/// slow the lines that are there do not wait long for others. A line that is longer than its limit is kBadData with its
/// number, and so is a source without line ends (a device, a binary file): it costs no more memory than twice the
/// limit.
///
/// Copies only the broken line at a cut. One thread at a time.
class LineBlockReader {
 public:
  static constexpr size_t kBlockSize = size_t{1} << 20;
  /// Whether lines wait for a block to be full.
  enum class Fill : uint8_t {
    kForAMoment,  ///< 100 ms: a fast source fills its blocks meanwhile, the lines of a slow one are not held back
    kUntilFull,
  };

  /// `file` goes into every block.
  LineBlockReader(std::unique_ptr<ByteSource> source, uint32_t file, LineLimit limit, size_t block_size = kBlockSize);

  /// Fills `block`; false at the end. When the source fails, the whole lines before come first, then the failure.
  Result<bool> Next(LineBlock& block, const std::stop_token& stop, Fill fill = Fill::kForAMoment);

  /// Why the source failed, known one Next earlier than that one says so; ok when it has not.
  const Status& failure() const { return failure_; }
  /// Whether the source failed within a line, which was left out.
  bool ends_in_a_line() const { return broken_size_ > 0; }
  /// Whether it was a line longer than the limit that ended reading.
  bool met_its_limit() const { return met_its_limit_; }
  uint64_t lines() const { return lines_; }
  uint64_t bytes() const { return bytes_; }

 private:
  using Clock = std::chrono::steady_clock;
  void Emit(LineBlock& block, size_t filled, size_t text_size);

  std::unique_ptr<ByteSource> source_;
  uint32_t file_;
  LineLimit limit_;
  size_t block_size_;
  std::unique_ptr<char[]> broken_;  ///< the start of the line that the last block left out
  size_t broken_size_ = 0;
  size_t broken_capacity_ = 0;
  Status failure_;
  bool met_its_limit_ = false;
  bool at_end_ = false;
  uint64_t lines_ = 0;
  uint64_t bytes_ = 0;
};

/// Counts '\n'.
uint64_t CountLines(std::string_view text);

}  // namespace millrace
