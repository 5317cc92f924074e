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

/// Writes scalars as TensorBoard reads them: FOLDER/events.out.tfevents.SECONDS.HOST, TFRecord frames (length and
/// content, each with its masked CRC-32C) around Event messages. Each call is one write: what was written is visible at
/// once. One thread.
class EventWriter {
 public:
  /// Makes the folder and the file. kIo. TensorBoard no longer shows what files before have of steps from `from` on, as
  /// a new session begins there; nothing: all stays.
  static Result<std::unique_ptr<EventWriter>> Create(const std::string& folder, std::optional<int64_t> from);

  /// Adds one event; scalars that are not finite are left out. `seconds` since 1970.
  Status AddScalars(int64_t step, double seconds, std::span<const Scalar> scalars);

  /// Whether what was written can be found in the folder.
  bool IsThere() const;
  const std::string& path() const { return path_; }

 private:
  EventWriter(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status Append(std::string_view event);

  std::string path_;
  FileDescriptor fd_;
  int64_t bytes_ = 0;  ///< written
};

/// One TFRecord frame around `content`.
std::string TfRecord(std::string_view content);

}  // namespace millrace
