#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/line_blocks.h"
#include "core/status.h"

namespace millrace {

/// Fails with kNotFound if a file is missing, kIo if it cannot be opened; reads nothing.
Status CheckReadable(const std::string& path);
/// Fails with kInvalidConfig for a pipe. Call it before reading a file again: a pipe's data is not written a second
/// time.
Status CheckStartsOver(const std::string& path);

/// The lines of a text file, decompressed if it starts like gz or zstd.
///
/// The file is open from the first Next to the end. One thread.
class LineFile {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  /// The next line, without its '\n'; LineBlock::kPadding bytes after it are readable. Valid until the next call. False
  /// at the end. Fails with kNotFound or kIo if the file cannot be read, kBadData for damaged compression or a line of
  /// more than 64 MiB, kCancelled after a stop request.
  Result<bool> Next(std::string_view* line, const std::stop_token& stop);
  /// Returns to the first line.
  void Rewind();

  /// "PATH:7" for the last line.
  std::string Where() const { return path_ + ":" + std::to_string(number_); }
  const std::string& path() const { return path_; }
  /// Number of the last line, from 1.
  uint64_t number() const { return number_; }

 private:
  std::string path_;
  std::unique_ptr<LineBlockReader> blocks_;
  LineBlock block_;
  size_t at_ = 0;  ///< start of the next line in block_
  uint64_t number_ = 0;
};

}  // namespace millrace
