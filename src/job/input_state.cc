#include "job/input_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "core/caught.h"
#include "core/crc32c.h"
#include "core/file.h"

namespace millrace {
namespace {

constexpr int64_t kEnd = int64_t{64} << 10;
constexpr size_t kLookingThreads = 8;
constexpr size_t kFilesAThread = 16;  ///< fewer are not worth starting one

/// Goes on from `crc` with `size` bytes; what cannot be read is left out.
uint32_t ChecksumOf(const FileDescriptor& file, int64_t from, int64_t size, uint32_t crc) {
  std::vector<char> bytes(static_cast<size_t>(size));
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = ::pread(file.get(), bytes.data() + filled, bytes.size() - filled,
                              static_cast<off_t>(from) + static_cast<off_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    filled += static_cast<size_t>(n);
  }
  return Crc32c(crc, bytes.data(), filled);
}

}  // namespace

StoredInputState LookAtInput(const std::string& file) {
  StoredInputState state;
  struct stat info {};
  // Before it is opened: opening waits for the writer of a named pipe.
  if (::stat(file.c_str(), &info) != 0) {
    if (errno == ENOENT) state.set_missing(true);
    return state;
  }
  if (!S_ISREG(info.st_mode)) return state;
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened.is_open() || ::fstat(opened.get(), &info) != 0) return state;
  const int64_t size = info.st_size;
  const int64_t first = std::min(size, kEnd);
  const int64_t last = std::min(size - first, kEnd);
  state.set_bytes(static_cast<uint64_t>(size));
  state.set_ends_crc32c(ChecksumOf(opened, size - last, last, ChecksumOf(opened, 0, first, 0)));
  state.set_modified(int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec);
  return state;
}

Result<std::vector<StoredInputState>> LookAtInputs(const std::vector<std::string>& files, const std::stop_token& stop,
                                                   const std::function<void(size_t)>& show) {
  std::vector<StoredInputState> states(files.size());
  std::atomic<size_t> next{0};
  std::atomic<size_t> done{0};
  const auto look = [&](const auto& after_each) {
    return Caught("a look at the input files", [&] {
      for (size_t i = next++; i < files.size() && !stop.stop_requested(); i = next++) {
        states[i] = LookAtInput(files[i]);
        after_each(++done);
      }
      return Status::Ok();
    });
  };
  std::array<Status, kLookingThreads> looked;
  {
    std::vector<std::jthread> others;
    // Those that can be had, and this one.
    (void)Caught("a look at the input files", [&] {
      while (others.size() + 1 < std::min(kLookingThreads, files.size() / kFilesAThread)) {
        others.emplace_back([&look, &status = looked[others.size()]] { status = look([](size_t) {}); });
      }
      return Status::Ok();
    });
    looked.back() = look(show);
  }
  for (const Status& status : looked) MR_TRY(status);
  if (done == files.size()) return states;
  return Cancelled("stopped after a look at " + std::to_string(done.load()) + " of " + std::to_string(files.size()) +
                   " input files");
}

Status CompareInput(const StoredInputState& before, const StoredInputState& now, bool* written_again) {
  *written_again = false;
  if (before.missing()) return Status::Ok();
  if (before.rows() != now.rows()) {
    return InvalidConfig("had " + std::to_string(before.rows()) + " rows in memory and has now " +
                         std::to_string(now.rows()));
  }
  if (before.has_rows() && before.ends_crc32c() != now.ends_crc32c()) {
    return InvalidConfig("has other values now, in as many rows");
  }
  if (before.has_bytes() != now.has_bytes()) {
    return InvalidConfig(now.has_bytes() ? "was no plain file and is one now" : "was a plain file and is none now");
  }
  if (before.bytes() != now.bytes()) {
    return InvalidConfig("had " + std::to_string(before.bytes()) + " bytes and has now " + std::to_string(now.bytes()));
  }
  if (before.ends_crc32c() != now.ends_crc32c()) {
    return InvalidConfig("has other content now, in as many bytes");
  }
  *written_again = before.modified() != now.modified();
  return Status::Ok();
}

}  // namespace millrace
