#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "core/status.h"

namespace millrace {

/// Delivers bytes from the first to the last: a file, a decompressed file, or the output of a command.
///
/// One thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills at least one byte of `out` (not empty) and returns how many; 0 at the end, and only when everything went
  /// well: a command that fails after its last byte is a failure here. Waits for slow sources; kCancelled within
  /// 100 ms of a stop request. A failure's first line says what happened; further lines are what a command wrote to
  /// its stderr.
  virtual Result<size_t> Read(std::span<char> out, const std::stop_token& stop) = 0;
  /// Waits, `most` at the longest, until Read would return at once, with bytes, the end or a failure; false when it
  /// still would not. A source that is never slow says true.
  virtual bool WaitReadable(std::chrono::milliseconds most) = 0;
};

/// Opens a file for reading. Directories are errors, as are missing files; the message names the file.
Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path);

}  // namespace millrace
