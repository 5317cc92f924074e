#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "core/status.h"

namespace millrace {

/// Delivers a byte sequence: a file, a decompressed file, or the output of a command.
///
/// One thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills at least one byte of `out` (not empty) and returns the count. Returns 0 at the end, only on success: a
  /// command that fails after its last byte is a failure here. Blocks on slow sources. Fails with kCancelled within 100
  /// ms of a stop request, kIo if reading or a command fails, kUnavailable for a command without output for too long,
  /// kBadData for damaged compression. The first line of a message is the failure; further lines are a command's
  /// stderr.
  virtual Result<size_t> Read(std::span<char> out, const std::stop_token& stop) = 0;
  /// Waits up to `most` until Read would return immediately with bytes, the end or a failure; false if it still would
  /// block. Always true for sources that never block.
  virtual bool WaitReadable(std::chrono::milliseconds most) = 0;
};

/// Opens a file for reading. Fails like OpenForReading.
Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path);

}  // namespace millrace
