#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "core/status.h"

namespace millrace {

/// A named value of one step.
using Scalar = std::pair<std::string, double>;

/// Writes scalars for TensorBoard: FOLDER/events.out.tfevents.SECONDS.HOST, TFRecord frames (length and content, each
/// with its masked CRC-32C) with Event messages. Each call is one write and visible immediately. One thread.
class EventWriter {
 public:
  /// Creates the folder and the file. If `from` is set, starts a new session there: TensorBoard hides steps from `from`
  /// on in earlier files. Fails with kIo if the folder or file cannot be written.
  static Result<std::unique_ptr<EventWriter>> Create(const std::string& folder, std::optional<int64_t> from);

  /// Adds one event; non-finite scalars are skipped. `seconds` since 1970. Fails with kIo if the file cannot be
  /// written.
  Status AddScalars(int64_t step, double seconds, std::span<const Scalar> scalars);

  /// Whether the written file is still in the folder.
  bool IsThere() const;
  const std::string& path() const { return path_; }

 private:
  EventWriter(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status Append(std::string_view event);

  std::string path_;
  FileDescriptor fd_;
  int64_t bytes_ = 0;  ///< bytes written
};

/// One TFRecord frame around `content`.
std::string TfRecord(std::string_view content);

}  // namespace millrace
