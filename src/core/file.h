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

/// Opens for reading; kNotFound when there is no such file, kIo for a directory or a refusal. Close-on-exec.
Result<FileDescriptor> OpenForReading(const std::string& path);

/// Reads a whole file. Same errors as OpenForReading; kCancelled after a stop request.
Result<std::string> ReadFile(const std::string& path, const std::stop_token& stop = {});

/// Writes all of `bytes` to an open file; `path` is for the message.
Status WriteAll(const FileDescriptor& file, std::string_view bytes, const std::string& path);

/// Replaces a file in one step: after a crash there is the old content or the new one. Writes an AtomicFile, syncs file
/// and folder.
Status WriteFileAtomically(const std::string& path, std::string_view content);

/// Writes a large file in pieces; it appears at Commit, synced, or never. Who else writes it waits.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  /// Removes what was written unless it was committed.
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

/// Makes every name in a folder durable after files in it were renamed.
Status SyncFolder(const std::string& folder);

/// A folder below $TMPDIR (or /tmp) that goes with the object, files and all.
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
