#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/file.h"
#include "core/status.h"

namespace millrace {

/// A whole file as bytes in memory, read by the system as they are touched. Immutable, shared by any number of threads.
///
/// Bytes that another program cuts off while they are mapped end the process when they are touched: CheckSize before
/// reading a stretch makes that an error instead, but for the moment between the two.
class MappedFile {
 public:
  /// OpenForReading's errors; kIo for what is no plain file.
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  /// kIo when the file is no longer as long as it was when it was mapped. A system call.
  Status CheckSize() const;

 private:
  MappedFile(std::string path, FileDescriptor fd, const uint8_t* data, size_t size)
      : path_(std::move(path)), fd_(std::move(fd)), data_(data), size_(size) {}
  std::string path_;
  FileDescriptor fd_;
  const uint8_t* data_;  ///< null when the file is empty
  size_t size_;
};

}  // namespace millrace
