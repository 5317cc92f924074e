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

/// What tells a whole file from a damaged one, and from another file.
struct FileSum {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  /// XXH64. A file whose parts end in their own CRC-32C, as a table's do, has the CRC-32C of any other file with parts
  /// of these sizes. Unknown of files that were written before it was kept.
  std::optional<uint64_t> xxh64;
  friend bool operator==(const FileSum&, const FileSum&) = default;
};

/// Writes a new file through a std::ostream and learns its size and checksum on the way. One thread.
class ChecksummedFile {
 public:
  /// kIo when the file cannot be made. `work` is asked and told every megabyte; a stop request is the first failure
  /// then. What is written gets to the disk on the way, so that the end takes no longer than the rest.
  static Result<std::unique_ptr<ChecksummedFile>> Create(const std::string& path, LongWork work = {});
  /// The same over a file that is open for writing, from its beginning; `path` is for messages.
  static Result<std::unique_ptr<ChecksummedFile>> Over(FileDescriptor file, const std::string& path,
                                                       LongWork work = {});
  ~ChecksummedFile();

  /// Goes bad at the first failure; Finish says why.
  std::ostream& stream();
  /// Writes out what is buffered and syncs. kIo with the system's reason (a full disk) for the first failure.
  Result<FileSum> Finish();

 private:
  class Buffer;
  explicit ChecksummedFile(std::unique_ptr<Buffer> buffer);
  std::unique_ptr<Buffer> buffer_;
  std::ostream stream_;
};

/// Reads a whole file for its sum. A stop request ends it: kCancelled.
Result<FileSum> SumOfFile(const std::string& path, const LongWork& work = {});

/// kBadData that names the file and both sums when it is not what `expected` says; kNotFound when it is missing,
/// kCancelled after a stop request.
Status CheckFileSum(const std::string& path, const FileSum& expected, const LongWork& work = {});

}  // namespace millrace
