#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>

#include "core/file.h"
#include "core/long_work.h"
#include "core/status.h"

namespace millrace {

/// Distinguishes a file from a damaged one and from other files.
struct FileSum {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  /// XXH64. Needed because a file whose parts end with their own CRC-32C, like a table's, has the same CRC-32C as any
  /// such file with equal part sizes. Unset for files from before it was stored.
  std::optional<uint64_t> xxh64;
  friend bool operator==(const FileSum&, const FileSum&) = default;
};

/// Writes a new file through a std::ostream and computes its size and checksums. One thread.
class ChecksummedFile {
 public:
  /// Fails with kIo if the file cannot be created. Checks and notifies `work` every megabyte; a stop request fails the
  /// writing. Data is flushed to disk continuously, so Finish is fast.
  static Result<std::unique_ptr<ChecksummedFile>> Create(const std::string& path, LongWork work = {});
  /// Writes to an open file from its start; `path` is for messages. Fails with kIo if it cannot be truncated.
  static Result<std::unique_ptr<ChecksummedFile>> Over(FileDescriptor file, const std::string& path,
                                                       LongWork work = {});
  ~ChecksummedFile();

  /// Becomes bad at the first failure, which Finish returns.
  std::ostream& stream();
  /// Flushes and syncs. Returns the first failure: kIo with the system's reason, for example a full disk, or kCancelled
  /// after a stop request of `work`.
  Result<FileSum> Finish();

 private:
  class Buffer;
  explicit ChecksummedFile(std::unique_ptr<Buffer> buffer);
  std::unique_ptr<Buffer> buffer_;
  std::ostream stream_;
};

/// Reads a whole file to compute its sum. Fails like OpenForReading, kIo if reading fails, kCancelled after a stop
/// request.
Result<FileSum> SumOfFile(const std::string& path, const LongWork& work = {});

/// Fails with kBadData, with the file and both sums, if it differs from `expected`; otherwise like SumOfFile.
Status CheckFileSum(const std::string& path, const FileSum& expected, const LongWork& work = {});

}  // namespace millrace
