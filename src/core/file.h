#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace millrace {

/// Owns a file descriptor; closes it. Movable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

/// Opens a file for reading with close-on-exec. Fails with kNotFound if it is missing, kIo for a directory or if the
/// system refuses.
Result<FileDescriptor> OpenForReading(const std::string& path);

/// Reads a whole file. Fails like OpenForReading, kIo if reading fails, kCancelled after a stop request.
Result<std::string> ReadFile(const std::string& path, const std::stop_token& stop = {});

/// Writes all of `bytes` to an open file; `path` is for messages. Fails with kIo and the system's reason.
Status WriteAll(const FileDescriptor& file, std::string_view bytes, const std::string& path);

/// Replaces a file atomically: after a crash it has the old or the new content. Syncs file and folder. Fails like
/// AtomicFile.
Status WriteFileAtomically(const std::string& path, std::string_view content);

/// Writes a large file in pieces; it appears at Commit, synced, or not at all. Concurrent writers of the same path
/// wait. All functions fail with kIo and the system's reason.
class AtomicFile {
 public:
  /// Creates the temporary file. Fails also if `path` exists and is not a regular file.
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  /// Removes the temporary file unless committed.
  ~AtomicFile();

  Status Append(std::string_view bytes);
  Status Commit();

 private:
  AtomicFile(std::string path, std::string beside, FileDescriptor fd)
      : path_(std::move(path)), beside_(std::move(beside)), fd_(std::move(fd)) {}
  std::string path_;
  std::string beside_;
  FileDescriptor fd_;
};

/// Syncs a folder, which makes renames of its files durable. Fails with kIo if it cannot be opened or synced.
Status SyncFolder(const std::string& folder);

/// A folder in $TMPDIR (or /tmp), removed with its content by the destructor. Create fails with kIo.
class TempDir {
 public:
  static Result<TempDir> Create(std::string_view name_start);
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace millrace
