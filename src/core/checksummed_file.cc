#include "core/checksummed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <streambuf>
#include <string_view>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/file.h"
#include "core/hash.h"

namespace millrace {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

/// The sum of bytes that come in pieces.
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
  Buffer(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)), bytes_(kBufferBytes) {
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
    }
    // The disk starts with them while the next bytes are made; fsync tells of what fails.
    const auto flushed = static_cast<off_t>(at - pbase());
    (void)sync_file_range(fd_.get(), place_, flushed, SYNC_FILE_RANGE_WRITE);
    place_ += flushed;
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return status_.ok();
  }

  std::string path_;
  FileDescriptor fd_;
  off_t place_ = 0;  ///< in the file, of what comes next
  std::vector<char> bytes_;
  Summer sum_;
  Status status_;
};

Result<std::unique_ptr<ChecksummedFile>> ChecksummedFile::Create(const std::string& path) {
  FileDescriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.is_open()) return IoErrorFromErrno("cannot make \"" + path + "\"", errno);
  return std::unique_ptr<ChecksummedFile>(new ChecksummedFile(std::make_unique<Buffer>(path, std::move(fd))));
}

ChecksummedFile::ChecksummedFile(std::unique_ptr<Buffer> buffer) : buffer_(std::move(buffer)), stream_(buffer_.get()) {}
ChecksummedFile::~ChecksummedFile() = default;

std::ostream& ChecksummedFile::stream() { return stream_; }
Result<FileSum> ChecksummedFile::Finish() { return buffer_->Finish(); }

Result<FileSum> SumOfFile(const std::string& path) {
  MR_ASSIGN(const FileDescriptor fd, OpenForReading(path));
  std::vector<char> bytes(kBufferBytes);
  Summer sum;
  while (true) {
    const ssize_t got = read(fd.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoErrorFromErrno("cannot read \"" + path + "\"", errno);
    if (got == 0) return sum.Sum();
    sum.Add({bytes.data(), static_cast<size_t>(got)});
  }
}

Status CheckFileSum(const std::string& path, const FileSum& expected) {
  MR_ASSIGN(const FileSum sum, SumOfFile(path));
  if (sum.bytes != expected.bytes) {
    return BadData("\"" + path + "\" is damaged: " + std::to_string(expected.bytes) + " bytes were written, it has " +
                   std::to_string(sum.bytes));
  }
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
