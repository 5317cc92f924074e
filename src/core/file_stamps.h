#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/status.h"

namespace millrace {

/// Length and modification time of a regular file.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified = 0;  ///< nanoseconds since 1970
  uint64_t inode = 0;
};

/// The current stamp of an open file; nullopt if it is not a regular file.
std::optional<FileStamp> StampOfOpen(int file);

/// Compares the stamps of a file before and after reading. Fails with kIo if it was written or truncated meanwhile,
/// because the bytes read are then undefined.
Status CheckUnchanged(const std::string& path, const FileStamp& then, const FileStamp& now);

/// Remembers the stamps of regular files at their first reading, so that a change is an error instead of other rows.
/// Ignores named pipes, devices and names read by a command. Thread-safe; a call costs a system call and a lookup.
class FileStamps {
 public:
  /// Call it before reading a file. Fails with kIo if it was replaced or written since its first reading.
  Status Begin(const std::string& path);
  /// Call it after the last byte. Fails with kIo if the file was written or truncated since Begin. A file replaced
  /// under its name was read completely; the next Begin detects it.
  Status End(const std::string& path) const;
  /// Treats the next reading of each file as its first.
  void Forget();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, FileStamp> stamps_;
};

}  // namespace millrace
