#include "core/checksummed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <streambuf>
#include <string_view>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/file.h"
#include "core/xxhash.h"

namespace millrace {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;  // fits into the L2 cache together with its source
/// Size of the window being flushed to disk while the next is written.
constexpr uint64_t kWindowBytes = uint64_t{8} << 20;

/// Checksums of bytes added in pieces.
class Summer {
 public:
  void Add(std::string_view bytes) {
    crc32c_ = Crc32c(crc32c_, bytes.data(), bytes.size());
    hash_.Add(bytes);
    bytes_ += bytes.size();
  }
  FileSum Sum() const { return {bytes_, crc32c_, hash_.Hash()}; }

 private:
  uint64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
  XxHash64Stream hash_;
};

}  // namespace

class ChecksummedFile::Buffer final : public std::streambuf {
 public:
  Buffer(std::string path, FileDescriptor fd, LongWork work)
      : path_(std::move(path)), fd_(std::move(fd)), work_(std::move(work)), bytes_(kBufferBytes) {
    setp(bytes_.data(), bytes_.data() + bytes_.size());
  }

  Result<FileSum> Finish() {
    Flush();
    if (status_.ok() && fsync(fd_.get()) != 0) status_ = IoErrorFromErrno("cannot sync \"" + path_ + "\"", errno);
    fd_.Close();
    if (!status_.ok()) return status_;
    return sum_.Sum();
  }

 protected:
  int_type overflow(int_type next) override {
    if (!Flush()) return traits_type::eof();
    if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
    return sputc(traits_type::to_char_type(next));
  }
  int sync() override { return Flush() ? 0 : -1; }

 private:
  bool Flush() {
    const char* at = pbase();
    while (status_.ok() && at < pptr()) {
      const ssize_t written = write(fd_.get(), at, static_cast<size_t>(pptr() - at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        status_ = IoErrorFromErrno("cannot write \"" + path_ + "\"", errno);
        break;
      }
      sum_.Add({at, static_cast<size_t>(written)});
      at += written;
      written_ += static_cast<uint64_t>(written);
      status_ = SyncOnTheWay();
      if (status_.ok()) status_ = work_.Done(static_cast<uint64_t>(written), "writing \"" + path_ + "\"");
    }
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return status_.ok();
  }

  /// Flushes whole windows to disk and waits for the previous one, so the final sync is short, and `work_` reports
  /// little more than what is on disk.
  Status SyncOnTheWay() {
    while (written_ - sent_ >= kWindowBytes) {
      const auto from = static_cast<off64_t>(sent_);
      constexpr auto kBytes = static_cast<off64_t>(kWindowBytes);
      constexpr unsigned kWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
      int failed = sync_file_range(fd_.get(), from, kBytes, SYNC_FILE_RANGE_WRITE);
      if (failed == 0 && sent_ > 0) failed = sync_file_range(fd_.get(), from - kBytes, kBytes, kWait);
      // Some file systems support only the final sync.
      const bool is_told_once = errno == EIO || errno == ENOSPC || errno == EDQUOT;
      if (failed != 0 && is_told_once) return IoErrorFromErrno("cannot write \"" + path_ + "\"", errno);
      sent_ += kWindowBytes;
    }
    return Status::Ok();
  }

  std::string path_;
  FileDescriptor fd_;
  LongWork work_;
  std::vector<char> bytes_;
  uint64_t written_ = 0;
  uint64_t sent_ = 0;  ///< of the file, in whole windows
  Summer sum_;
  Status status_;
};

Result<std::unique_ptr<ChecksummedFile>> ChecksummedFile::Create(const std::string& path, LongWork work) {
  FileDescriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.is_open()) return IoErrorFromErrno("cannot make \"" + path + "\"", errno);
  return std::unique_ptr<ChecksummedFile>(
      new ChecksummedFile(std::make_unique<Buffer>(path, std::move(fd), std::move(work))));
}

Result<std::unique_ptr<ChecksummedFile>> ChecksummedFile::Over(FileDescriptor file, const std::string& path,
                                                               LongWork work) {
  if (ftruncate(file.get(), 0) != 0) return IoErrorFromErrno("cannot empty \"" + path + "\"", errno);
  return std::unique_ptr<ChecksummedFile>(
      new ChecksummedFile(std::make_unique<Buffer>(path, std::move(file), std::move(work))));
}

ChecksummedFile::ChecksummedFile(std::unique_ptr<Buffer> buffer) : buffer_(std::move(buffer)), stream_(buffer_.get()) {}
ChecksummedFile::~ChecksummedFile() = default;

std::ostream& ChecksummedFile::stream() { return stream_; }
Result<FileSum> ChecksummedFile::Finish() { return buffer_->Finish(); }

Result<FileSum> SumOfFile(const std::string& path, const LongWork& work) {
  MR_ASSIGN(const FileDescriptor fd, OpenForReading(path));
  std::vector<char> bytes(kBufferBytes);
  Summer sum;
  while (true) {
    const ssize_t got = read(fd.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoErrorFromErrno("cannot read \"" + path + "\"", errno);
    MR_TRY(work.Done(static_cast<uint64_t>(got), "reading \"" + path + "\""));
    if (got == 0) return sum.Sum();
    sum.Add({bytes.data(), static_cast<size_t>(got)});
  }
}

Status CheckFileSum(const std::string& path, const FileSum& expected, const LongWork& work) {
  const auto check_size = [&](uint64_t bytes) {
    if (bytes == expected.bytes) return Status::Ok();
    return BadData("\"" + path + "\" is damaged: " + std::to_string(expected.bytes) + " bytes were written, it has " +
                   std::to_string(bytes));
  };
  // A file of another size is not read: a sparse one can claim terabytes.
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    MR_TRY(check_size(static_cast<uint64_t>(info.st_size)));
  }
  MR_ASSIGN(const FileSum sum, SumOfFile(path, work));
  MR_TRY(check_size(sum.bytes));
  if (sum.crc32c != expected.crc32c) {
    return BadData("\"" + path + "\" is damaged: its checksum (CRC-32C) was " + std::to_string(expected.crc32c) +
                   " when it was written and is " + std::to_string(sum.crc32c));
  }
  if (expected.xxh64 && sum.xxh64 != expected.xxh64) {
    return BadData("\"" + path + "\" is another file: its checksum (XXH64) was " + std::to_string(*expected.xxh64) +
                   " when it was written and is " + std::to_string(*sum.xxh64));
  }
  return Status::Ok();
}

}  // namespace millrace
