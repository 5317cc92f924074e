#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Writes bytes to FOLDER/part-00000, part-00001, ... in sequence. One thread at a time.
class PartFiles {
 public:
  /// `suffix` follows the number: ".gz". The folder "-" is standard output, as a single part.
  PartFiles(std::string folder, std::string suffix) : folder_(std::move(folder)), suffix_(std::move(suffix)) {}
  ~PartFiles();
  PartFiles(const PartFiles&) = delete;
  PartFiles& operator=(const PartFiles&) = delete;

  /// Appends to part `part`, which must not decrease between calls. Fails with kIo, naming the file.
  Status Append(int part, std::string_view bytes);
  /// Closes the last file. Fails with kIo if it could not be written, for example on a full disk.
  Status Close();

  /// Paths so far, in order.
  const std::vector<std::string>& paths() const { return paths_; }
  int64_t bytes() const { return bytes_; }

 private:
  Status Open(int part);

  std::string folder_;
  std::string suffix_;
  std::FILE* file_ = nullptr;
  int part_ = -1;
  std::vector<std::string> paths_;
  int64_t bytes_ = 0;
};

}  // namespace millrace
