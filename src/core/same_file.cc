#include "core/same_file.h"

#include <sys/stat.h>

namespace millrace {

bool IsSamePlainFile(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && S_ISREG(first.st_mode) &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool IsStillUnder(int fd, const std::string& path, int64_t bytes) {
  struct stat written {};
  struct stat named {};
  if (::fstat(fd, &written) != 0) return false;
  if (!S_ISREG(written.st_mode)) return true;
  return written.st_size >= bytes && ::stat(path.c_str(), &named) == 0 && written.st_dev == named.st_dev &&
         written.st_ino == named.st_ino;
}

}  // namespace millrace
