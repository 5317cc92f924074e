#include "core/file_stamps.h"

#include <sys/stat.h>

namespace millrace {
namespace {

std::optional<FileStamp> ToStamp(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  FileStamp stamp;
  stamp.bytes = static_cast<int64_t>(info.st_size);
  stamp.modified = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  stamp.inode = static_cast<uint64_t>(info.st_ino);
  return stamp;
}

std::optional<FileStamp> StampOf(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? ToStamp(info) : std::nullopt;
}

bool IsAlike(const FileStamp& a, const FileStamp& b) { return a.bytes == b.bytes && a.modified == b.modified; }

std::string Change(const FileStamp& then, const FileStamp& now) {
  if (then.bytes == now.bytes) return "though it has " + std::to_string(now.bytes) + " bytes as before";
  return "from " + std::to_string(then.bytes) + " bytes to " + std::to_string(now.bytes);
}

}  // namespace

Status FileStamps::Begin(const std::string& path) {
  const std::optional<FileStamp> now = StampOf(path);
  if (!now) return Status::Ok();
  const std::lock_guard lock(mutex_);
  const FileStamp& then = stamps_.insert({path, *now}).first->second;
  if (IsAlike(then, *now)) return Status::Ok();
  return IoError("\"" + path + "\" has changed since it was first read, " + Change(then, *now) +
                 ": every pass must have the same rows, so train from a copy that nobody writes to");
}

Status FileStamps::End(const std::string& path) const {
  const std::optional<FileStamp> now = StampOf(path);
  if (!now) return Status::Ok();
  const std::lock_guard lock(mutex_);
  const auto then = stamps_.find(path);
  return then == stamps_.end() || then->second.inode != now->inode ? Status::Ok()
                                                                   : CheckUnchanged(path, then->second, *now);
}

std::optional<FileStamp> StampOfOpen(int file) {
  struct stat info {};
  return ::fstat(file, &info) == 0 ? ToStamp(info) : std::nullopt;
}

Status CheckUnchanged(const std::string& path, const FileStamp& then, const FileStamp& now) {
  if (IsAlike(then, now)) return Status::Ok();
  return IoError("\"" + path + "\" changed while it was read, " + Change(then, now) +
                 "\n  read it once it is whole, or a copy that nobody writes to");
}

void FileStamps::Forget() {
  const std::lock_guard lock(mutex_);
  stamps_.clear();
}

}  // namespace millrace
