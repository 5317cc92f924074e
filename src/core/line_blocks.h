#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/byte_source.h"

namespace millrace {

/// Takes a record with its leading uint32 size off the front of `records`.
inline std::string_view TakeSized(std::string_view* records) {
  uint32_t size = 0;
  records->copy(reinterpret_cast<char*>(&size), sizeof(size));
  const std::string_view record = records->substr(sizeof(size), size);
  records->remove_prefix(sizeof(size) + size);
  return record;
}

/// Consecutive whole lines, or whole records, of one file, in a reusable buffer.
///
/// Every line ends with '\n', which is added to a last line without it. A record of a binary file follows its uint32
/// size and counts as a line. kPadding zero bytes after the text are readable, so a parser can load whole words.
/// Movable; one thread at a time.
struct LineBlock {
  static constexpr size_t kPadding = 64;

  std::string_view text() const { return {data.get(), size}; }
  /// Takes a line without '\n', or a record without size, off the front of a part of text().
  std::string_view TakeLine(std::string_view* text) const {
    if (has_sizes) [[unlikely]]
      return TakeSized(text);
    const size_t length = text->find('\n');
    const std::string_view line = text->substr(0, length);
    text->remove_prefix(length + 1);
    return line;
  }
  /// Reserves `bytes`, keeping the first `filled`.
  void Reserve(size_t bytes, size_t filled);

  std::unique_ptr<char[]> data;
  size_t size = 0;
  size_t capacity = 0;      ///< size of `data` without padding
  uint32_t file = 0;        ///< index in the file list
  uint64_t first_line = 1;  ///< number of the first line, from 1
  uint64_t lines = 0;
  uint64_t offset = 0;  ///< position of the text in the file, after command and decompression
  bool has_sizes = false;
  /// The file's first line if it names columns; null otherwise.
  std::shared_ptr<const std::string> header = nullptr;
};

/// Maximum length of a line.
struct LineLimit {
  /// Allowed range: blocks are never smaller than kLeast, and kMost is the largest offset into a block.
  static constexpr int64_t kLeast = int64_t{1} << 20;
  static constexpr int64_t kMost = int64_t{1} << 30;

  size_t bytes = size_t{64} << 20;  ///< without the '\n'
  std::string advice;               ///< advice at the end of the message about a longer line
};

/// Cuts a source into blocks. One thread at a time.
class BlockReader {
 public:
  static constexpr size_t kBlockSize = size_t{1} << 20;
  /// How long lines wait for more lines: long compared with a block of a fast source, short for users.
  static constexpr std::chrono::milliseconds kMoment{100};
  /// Whether lines wait for a full block.
  enum class Fill : uint8_t {
    kForAMoment,  ///< a fast source fills its blocks, and lines of a slow source are not held back
    kUntilFull,
  };

  virtual ~BlockReader() = default;
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;
  /// Fills `block`; false at the end. If the source fails, the whole lines before the failure are returned first. Fails
  /// like the source, and with kBadData for a line or record that is too long or malformed.
  virtual Result<bool> Next(LineBlock& block, const std::stop_token& stop, Fill fill) = 0;

  /// The reason reading failed, available one Next before that failure is returned; ok otherwise.
  const Status& failure() const { return failure_; }
  /// Whether the source failed within a line, which was dropped.
  bool ends_in_a_line() const { return ends_in_a_line_; }
  /// Whether the content caused the failure, such as a line over the limit; the message then starts with its position.
  bool names_its_line() const { return names_its_line_; }
  /// The unit in messages: "line" or "record".
  const char* unit() const { return unit_; }
  uint64_t lines() const { return lines_; }
  uint64_t bytes() const { return bytes_; }

 protected:
  explicit BlockReader(const char* unit) : unit_(unit) {}

  Status failure_;
  bool ends_in_a_line_ = false;
  bool names_its_line_ = false;
  uint64_t lines_ = 0;
  uint64_t bytes_ = 0;

 private:
  const char* unit_;
};

/// Cuts a source into blocks of about 1 MiB at line ends. A longer line makes a longer block; with a slow source,
/// available lines are returned soon. A line over the limit, or a source without line ends (a device, a binary file),
/// fails with kBadData and the line number; memory is at most twice the limit.
///
/// Copies only the incomplete line at a cut. One thread at a time.
class LineBlockReader final : public BlockReader {
 public:
  /// `file` is copied to every block.
  LineBlockReader(std::unique_ptr<ByteSource> source, uint32_t file, LineLimit limit, size_t block_size = kBlockSize);

  Result<bool> Next(LineBlock& block, const std::stop_token& stop, Fill fill) override;

 private:
  using Clock = std::chrono::steady_clock;
  void Emit(LineBlock& block, size_t filled, size_t text_size);

  std::unique_ptr<ByteSource> source_;
  uint32_t file_;
  LineLimit limit_;
  size_t block_size_;
  std::unique_ptr<char[]> broken_;  ///< start of the line cut off by the last block
  size_t broken_size_ = 0;
  size_t broken_capacity_ = 0;
  bool at_end_ = false;
};

/// Counts '\n'.
uint64_t CountLines(std::string_view text);

}  // namespace millrace
