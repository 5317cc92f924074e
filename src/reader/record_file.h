#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "core/status.h"
#include "reader/record_stream.h"

namespace millrace {

/// The frames of a binary file, decompressed if it starts like gz or zstd.
///
/// The file is open from the first Next to the end. One thread.
class RecordFile {
 public:
  RecordFile(std::string path, const Framing& framing) : path_(std::move(path)), framing_(&framing) {}

  /// Like RecordStream::Next; every failure names the file. kNotFound or kIo if it cannot be opened.
  Result<bool> Next(RecordFrame* frame, const std::stop_token& stop);
  /// Returns to the first byte.
  void Rewind() { stream_.reset(); }

  /// Returns kBadData "PATH: byte 17: MESSAGE" for the last frame.
  Status Error(const std::string& message) const { return stream_->Error(message).Context(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const Framing* framing_;
  std::optional<RecordStream> stream_;
  bool is_begun_ = false;  ///< the file was opened before
};

}  // namespace millrace
