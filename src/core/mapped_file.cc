#include "core/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace millrace {

Result<MappedFile> MappedFile::Open(const std::string& path) {
  MR_ASSIGN(FileDescriptor fd, OpenForReading(path));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return IoErrorFromErrno("cannot look at \"" + path + "\"", errno);
  if (!S_ISREG(info.st_mode)) return IoError("\"" + path + "\" is no plain file, so it cannot be mapped into memory");
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile(path, std::move(fd), nullptr, 0);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return IoErrorFromErrno("cannot map \"" + path + "\" into memory", errno);
  madvise(data, size, MADV_SEQUENTIAL);  // only a hint for speed
  return MappedFile(path, std::move(fd), static_cast<const uint8_t*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

Status MappedFile::CheckSize() const {
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0) return IoErrorFromErrno("cannot look at \"" + path_ + "\"", errno);
  if (static_cast<size_t>(info.st_size) == size_) return Status::Ok();
  return IoError("\"" + path_ + "\" was " + std::to_string(size_) + " bytes long and is now " +
                 std::to_string(info.st_size) + ": it changed while it was read");
}

}  // namespace millrace
