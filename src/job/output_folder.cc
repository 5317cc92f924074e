#include "job/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>

namespace millrace {

Result<FileDescriptor> MakeOutputFolder(const std::string& folder) {
  std::error_code error;
  std::error_code ignored;
  std::filesystem::create_directories(folder, error);
  if (error == std::errc::not_a_directory || error == std::errc::file_exists) {
    std::filesystem::path file = folder;
    while (file.has_relative_path() && !std::filesystem::exists(file, ignored)) file = file.parent_path();
    return IoError("cannot make the output folder \"" + folder + "\": \"" + file.string() +
                   "\" is a file; name another --output_dir, or move the file away");
  }
  if (error) return IoError("cannot make the output folder \"" + folder + "\": " + error.message());
  FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open() && ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return InvalidConfig("another run is writing to the output folder \"" + folder +
                         "\": wait for its end, or name another --output_dir");
  }
  return opened;
}

}  // namespace millrace
