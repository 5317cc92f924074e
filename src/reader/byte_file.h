#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/byte_source.h"
#include "core/status.h"

namespace millrace {

/// A binary file, read from its start to its end, gz and zstd unpacked by its first bytes.
///
/// The file is open from the first Read to the end. One thread.
class ByteFile {
 public:
  explicit ByteFile(std::string path) : path_(std::move(path)) {}

  /// The next `size` bytes, valid until the next call; empty (of a size above 0) at the end. A file that ends within
  /// them is kBadData that says `what` was not whole. Allocates no more than twice of what the file holds.
  Result<std::string_view> Read(uint64_t size, const char* what, const std::stop_token& stop);
  /// Back to the first byte.
  void Rewind();

  /// kBadData "PATH: byte 17: MESSAGE", of the byte where the last Read began.
  Status Error(const std::string& message) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;  ///< of the bytes of buffer_ that nobody asked for yet
  size_t end_ = 0;
  uint64_t offset_ = 0;    ///< in the unpacked file, of begin_
  uint64_t last_ = 0;      ///< offset of the last Read
  bool is_begun_ = false;  ///< the file was opened before
};

}  // namespace millrace
