#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/line_blocks.h"
#include "core/status.h"

namespace millrace {

/// kNotFound or kIo when a file cannot be opened; reads nothing of it.
Status CheckReadable(const std::string& path);
/// kInvalidConfig for a pipe, to be asked before a file is read again: nobody would write into it a second time.
Status CheckStartsOver(const std::string& path);

/// The lines of a text file, gz and zstd unpacked by its first bytes.
///
/// The file is open from the first Next to the end. One thread.
class LineFile {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  /// The next line, without its '\n'; LineBlock::kPadding bytes after it may be read. Valid until the
  /// next call. False at the end. kBadData for a line of more than 64 MiB, which nobody wrote as one.
  Result<bool> Next(std::string_view* line, const std::stop_token& stop);
  /// Back to the first line.
  void Rewind();

  /// "PATH:7" of the line that Next gave last.
  std::string Where() const { return path_ + ":" + std::to_string(number_); }
  const std::string& path() const { return path_; }
  /// Of the line that Next gave last, from 1.
  uint64_t number() const { return number_; }

 private:
  std::string path_;
  std::unique_ptr<LineBlockReader> blocks_;
  LineBlock block_;
  size_t at_ = 0;  ///< start of the next line in block_
  uint64_t number_ = 0;
};

}  // namespace millrace
