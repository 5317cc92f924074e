#include "core/replace_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace millrace {

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? IoError("cannot make the folder \"" + path + "\": " + error.message()) : Status::Ok();
}

Status ReplaceFolder(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return Status::Ok();
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return RemoveFolder(from);
  return IoErrorFromErrno("cannot rename \"" + from + "\" to \"" + to + "\"", errno);
}

Status WriteFolder(const std::string& to, const std::function<Status(const std::string& folder)>& write) {
  // "model/" is "model": what lies beside it is not in it.
  std::string place = to;
  while (place.size() > 1 && place.back() == '/') place.pop_back();
  const std::string beside = place + std::string(kUnfinishedSuffix);
  MR_TRY(RemoveFolder(beside));
  MR_TRY(MakeFolder(beside));
  Status status = write(beside);
  if (status.ok()) status = ReplaceFolder(beside, place);
  std::error_code error;
  if (!status.ok()) std::filesystem::remove_all(beside, error);
  return status;
}

Status CheckReplaced(const std::string& folder, std::initializer_list<std::string_view> files) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::symlink_status(folder, error).type();
  const bool is_there = type != std::filesystem::file_type::not_found;
  if (is_there && error) return IoError("cannot look at \"" + folder + "\": " + error.message());
  if (is_there && !std::filesystem::is_directory(folder, error)) {
    return InvalidConfig("\"" + folder +
                         "\" is a file, and the folder of a model would take its place: move it away, or choose "
                         "another name");
  }
  const bool is_used = std::filesystem::is_directory(folder, error) && !std::filesystem::is_empty(folder, error);
  const auto has = [&](std::string_view file) {
    return std::filesystem::exists(folder + "/" + std::string(file), error);
  };
  if (!is_used || error || std::any_of(files.begin(), files.end(), has)) return Status::Ok();
  return InvalidConfig("the folder \"" + folder +
                       "\" is there, holds no saved model, and the new one would take its place: move it away, or "
                       "choose another folder");
}

Status RemoveFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? IoError("cannot remove \"" + path + "\": " + error.message()) : Status::Ok();
}

}  // namespace millrace
