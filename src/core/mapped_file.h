#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/file.h"
#include "core/status.h"

namespace millrace {

/// A whole file mapped into memory and read on access. Immutable, shared by any number of threads.
///
/// Accessing bytes that another program has truncated kills the process. Calling CheckSize before reading a range turns
/// this into an error, except for a truncation in between.
class MappedFile {
 public:
  /// Fails like OpenForReading, kIo if the file is not regular or cannot be mapped.
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  /// Fails with kIo if the file's length changed since it was mapped. Costs a system call.
  Status CheckSize() const;

 private:
  MappedFile(std::string path, FileDescriptor fd, const uint8_t* data, size_t size)
      : path_(std::move(path)), fd_(std::move(fd)), data_(data), size_(size) {}
  std::string path_;
  FileDescriptor fd_;
  const uint8_t* data_;  ///< null for an empty file
  size_t size_;
};

}  // namespace millrace
