#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/status.h"

namespace millrace {

/// How long a plain file was, and when it was last written.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified = 0;  ///< nanoseconds since 1970
  uint64_t inode = 0;
};

/// How an open file is now; nullopt for what is no plain one.
std::optional<FileStamp> StampOfOpen(int file);

/// Compares a file at the end of its reading with what it was at the beginning: kIo when it was written to or cut off
/// meanwhile, as then nobody knows which bytes were read.
Status CheckUnchanged(const std::string& path, const FileStamp& then, const FileStamp& now);

/// Remembers how plain files were when they were first read, so that a change is an error and not other rows. Named
/// pipes, devices and names that a command reads are let pass. Thread-safe; a call is a system call and a look-up.
class FileStamps {
 public:
  /// Before a reading of the file. kIo when it is another, or was written to, since the first reading.
  Status Begin(const std::string& path);
  /// Behind the last byte of a reading. kIo when it was written to, or cut off, since Begin. One that was replaced
  /// under its name was read whole, and is found by the next Begin.
  Status End(const std::string& path) const;
  /// What is read from now on is read for the first time.
  void Forget();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, FileStamp> stamps_;
};

}  // namespace millrace
