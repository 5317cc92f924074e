#include "core/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "core/byte_source.h"
#include "core/file_stamps.h"
#include "core/replace_folder.h"

namespace millrace {
namespace {

/// Maximum delay of a stop request while waiting for a named pipe.
constexpr std::chrono::milliseconds kTick{50};

/// Opens and truncates the temporary file for `path` and locks out other writers while it is open. Reuses the file of a
/// killed run.
Result<FileDescriptor> OpenUnfinished(const std::string& beside, const std::string& path) {
  for (;;) {
    FileDescriptor fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666));
    struct stat opened = {};
    if (!fd.is_open() || ::fstat(fd.get(), &opened) != 0) {
      return IoErrorFromErrno("cannot write beside \"" + path + "\"", errno);
    }
    if (!S_ISREG(opened.st_mode)) return IoError("cannot write \"" + beside + "\": it is no regular file");
    // Without support for locks, nobody waits.
    while (::flock(fd.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    // The previous writer has renamed or removed it.
    struct stat there = {};
    const bool is_there = ::lstat(beside.c_str(), &there) == 0;
    if (!is_there || there.st_ino != opened.st_ino || there.st_dev != opened.st_dev) continue;
    if (::ftruncate(fd.get(), 0) != 0) return IoErrorFromErrno("cannot write \"" + beside + "\"", errno);
    return fd;
  }
}

/// Files read completely are small; a device may have no end.
constexpr size_t kMostOfADevice = size_t{1} << 30;

class FileSource final : public ByteSource {
 public:
  FileSource(std::string path, FileDescriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)), stamp_(StampOfOpen(fd_.get())) {}

  Result<size_t> Read(std::span<char> out, const std::stop_token& stop) override {
    for (;;) {
      if (stop.stop_requested()) return Cancelled("stopped while reading " + path_);
      if (!WaitReadable(kTick)) continue;
      const ssize_t n = ::read(fd_.get(), out.data(), out.size());
      if (n == 0) MR_TRY(CheckEnd());
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EINTR && errno != EAGAIN) return IoErrorFromErrno(path_ + ": read", errno);
    }
  }
  bool WaitReadable(std::chrono::milliseconds most) override {
    if (stamp_) return true;
    pollfd polled{fd_.get(), POLLIN, 0};
    return ::poll(&polled, 1, static_cast<int>(most.count())) > 0;
  }

 private:
  /// A file truncated at a line's end would look complete.
  Status CheckEnd() const {
    const std::optional<FileStamp> now = StampOfOpen(fd_.get());
    return stamp_ && now ? CheckUnchanged(path_, *stamp_, *now) : Status::Ok();
  }

  std::string path_;
  FileDescriptor fd_;
  /// For a regular file. Others may block for any time: a named pipe, a terminal.
  std::optional<FileStamp> stamp_;
};

/// `more_flags` are added to the flags of all reads.
Result<FileDescriptor> OpenToRead(const std::string& path, int more_flags) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | more_flags));
  if (!fd.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return NotFound("no such file: \"" + path + "\"");
    return IoErrorFromErrno("cannot open \"" + path + "\"", errno);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return IoErrorFromErrno("cannot inspect \"" + path + "\"", errno);
  if (S_ISDIR(info.st_mode)) return IoError("\"" + path + "\" is a folder, not a file");
  return fd;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void FileDescriptor::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<FileDescriptor> OpenForReading(const std::string& path) { return OpenToRead(path, 0); }

Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path) {
  // Does not wait for the writer of a named pipe: Read does, and reacts to stop requests.
  MR_ASSIGN(FileDescriptor fd, OpenToRead(path, O_NONBLOCK));
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(path, std::move(fd)));
}

Result<std::string> ReadFile(const std::string& path, const std::stop_token& stop) {
  constexpr size_t kPiece = size_t{4} << 20;
  MR_ASSIGN(const FileDescriptor fd, OpenForReading(path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return IoErrorFromErrno("cannot inspect \"" + path + "\"", errno);
  std::string content;
  // Extra space detects the end without growing; pipes and /proc report size 0.
  content.reserve(static_cast<size_t>(info.st_size) + 4096);
  size_t filled = 0;
  for (;;) {
    if (stop.stop_requested()) return Cancelled("stopped while reading \"" + path + "\"");
    if (filled == content.size()) {
      if (filled == content.capacity()) content.reserve(2 * filled);
      content.resize(std::min(filled + kPiece, content.capacity()));
    }
    const ssize_t n = ::read(fd.get(), content.data() + filled, content.size() - filled);
    if (n < 0) {
      if (errno == EINTR) continue;
      return IoErrorFromErrno(path + ": read", errno);
    }
    if (n == 0) break;
    filled += static_cast<size_t>(n);
    if (filled > kMostOfADevice && !S_ISREG(info.st_mode)) {
      return IoError("\"" + path + "\" is no plain file, and does not end within 1 GiB");
    }
  }
  content.resize(filled);
  return content;
}

Status WriteAll(const FileDescriptor& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return IoErrorFromErrno(path + ": write", errno);
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  MR_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  MR_TRY(file.Append(content));
  return file.Commit();
}

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  struct stat there = {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return IoError("cannot write \"" + path + "\": it is " + (S_ISDIR(there.st_mode) ? "a folder" : "no regular file") +
                   ", whose place a new file would take");
  }
  std::string beside = path + std::string(kUnfinishedSuffix);
  MR_ASSIGN(FileDescriptor fd, OpenUnfinished(beside, path));
  return AtomicFile(path, std::move(beside), std::move(fd));
}

AtomicFile::~AtomicFile() {
  if (fd_.is_open()) ::unlink(beside_.c_str());
}

Status AtomicFile::Append(std::string_view bytes) { return WriteAll(fd_, bytes, path_); }

Status AtomicFile::Commit() {
  if (::fsync(fd_.get()) != 0) return IoErrorFromErrno(path_ + ": sync", errno);
  if (::rename(beside_.c_str(), path_.c_str()) != 0) return IoErrorFromErrno(path_ + ": rename", errno);
  fd_.Close();
  return SyncFolder(FolderOf(path_));
}

Status SyncFolder(const std::string& folder) {
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return IoErrorFromErrno("cannot open folder \"" + folder + "\"", errno);
  // Some file systems return EINVAL because they cannot sync folders; nothing more can be done.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return IoErrorFromErrno(folder + ": sync", errno);
  return Status::Ok();
}

Result<TempDir> TempDir::Create(std::string_view name_start) {
  const char* base = std::getenv("TMPDIR");
  std::string path = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/";
  path.append(name_start).append("XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) return IoErrorFromErrno("cannot make a folder like \"" + path + "\"", errno);
  return TempDir(std::move(path));
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir::~TempDir() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace millrace
