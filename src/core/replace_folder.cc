#include "core/replace_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <filesystem>

namespace millrace {

Status ReplaceFolder(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return Status::Ok();
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return RemoveFolder(from);
  return IoErrorFromErrno("cannot rename \"" + from + "\" to \"" + to + "\"", errno);
}

Status RemoveFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? IoError("cannot remove \"" + path + "\": " + error.message()) : Status::Ok();
}

}  // namespace millrace
