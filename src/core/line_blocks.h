#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/byte_source.h"

namespace millrace {

/// Takes a record off the front of `records`, which begins with its uint32 size.
inline std::string_view TakeSized(std::string_view* records) {
  uint32_t size = 0;
  records->copy(reinterpret_cast<char*>(&size), sizeof(size));
  const std::string_view record = records->substr(sizeof(size), size);
  records->remove_prefix(sizeof(size) + size);
  return record;
}

/// A run of whole lines, or of whole records, of one file, in a buffer that is reused from block to block.
///
/// Every line ends in '\n'; a last line without one is given it. A record of a binary file stands behind its uint32
/// size, and counts as a line. kPadding bytes after the text may be read (they are 0), so that a parser can load whole
/// words. Movable; one thread at a time.
struct LineBlock {
  static constexpr size_t kPadding = 64;

  std::string_view text() const { return {data.get(), size}; }
  /// Takes a line, without its '\n', or a record, without its size, off the front of a part of text().
  std::string_view TakeLine(std::string_view* text) const {
    if (has_sizes) [[unlikely]]
      return TakeSized(text);
    const size_t length = text->find('\n');
    const std::string_view line = text->substr(0, length);
    text->remove_prefix(length + 1);
    return line;
  }
  /// Makes room for `bytes`, of which the first `filled` are kept.
  void Reserve(size_t bytes, size_t filled);

  std::unique_ptr<char[]> data;
  size_t size = 0;
  size_t capacity = 0;      ///< bytes of `data` without the padding
  uint32_t file = 0;        ///< number in the file list
  uint64_t first_line = 1;  ///< number of the first line, from 1
  uint64_t lines = 0;
  uint64_t offset = 0;  ///< bytes of the file (after command and decompression) before the text
  bool has_sizes = false;
  /// The file's first line where that is no row but names columns; null where there is none.
  std::shared_ptr<const std::string> header = nullptr;
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

/// Cuts a source into blocks. One thread at a time.
class BlockReader {
 public:
  static constexpr size_t kBlockSize = size_t{1} << 20;
  /// How long lines wait for others to come with them: long beside what a block of a fast source takes, short to
  /// people.
  static constexpr std::chrono::milliseconds kMoment{100};
  /// Whether lines wait for a block to be full.
  enum class Fill : uint8_t {
    kForAMoment,  ///< a fast source fills its blocks meanwhile, the lines of a slow one are not held back
    kUntilFull,
  };

  virtual ~BlockReader() = default;
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;
  /// Fills `block`; false at the end. When the source fails, the whole lines before come first, then the failure.
  virtual Result<bool> Next(LineBlock& block, const std::stop_token& stop, Fill fill) = 0;

  /// Why reading failed, known one Next earlier than that one says so; ok when it has not.
  const Status& failure() const { return failure_; }
  /// Whether the source failed within a line, which was left out.
  bool ends_in_a_line() const { return ends_in_a_line_; }
  /// Whether the failure is of the bytes that came, a line longer than the limit say, and begins with their place.
  bool names_its_line() const { return names_its_line_; }
  /// What it cuts, for messages: "line" or "record".
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

/// Cuts a source into blocks of about 1 MiB at line ends; a longer line makes a longer block, and of a source that is
/// slow the lines that are there do not wait long for others. A line that is longer than its limit is kBadData with its
/// number, and so is a source without line ends (a device, a binary file): it costs no more memory than twice the
/// limit.
///
/// Copies only the broken line at a cut. One thread at a time.
class LineBlockReader final : public BlockReader {
 public:
  /// `file` goes into every block.
  LineBlockReader(std::unique_ptr<ByteSource> source, uint32_t file, LineLimit limit, size_t block_size = kBlockSize);

  Result<bool> Next(LineBlock& block, const std::stop_token& stop, Fill fill) override;

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
  bool at_end_ = false;
};

/// Counts '\n'.
uint64_t CountLines(std::string_view text);

}  // namespace millrace
