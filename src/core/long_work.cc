#include "core/long_work.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/file.h"

namespace millrace {

Result<std::string> ReadFile(const std::string& path, const std::stop_token& stop) {
  constexpr size_t kPiece = size_t{4} << 20;
  MR_ASSIGN(const FileDescriptor fd, OpenForReading(path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return IoErrorFromErrno("cannot inspect \"" + path + "\"", errno);
  if (!S_ISREG(info.st_mode)) return ReadFile(path);  // who knows how much comes
  std::string content;
  content.reserve(static_cast<size_t>(info.st_size) + 1);
  for (;;) {
    if (stop.stop_requested()) return Cancelled("stopped while reading \"" + path + "\"");
    const size_t filled = content.size();
    // One byte beyond the size shows the end of the file.
    content.resize(std::max(filled + 1, std::min(filled + kPiece, content.capacity())));
    const ssize_t n = ::read(fd.get(), content.data() + filled, content.size() - filled);
    content.resize(filled + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno != EINTR) return IoErrorFromErrno(path + ": read", errno);
    if (n == 0) return content;
  }
}

}  // namespace millrace
