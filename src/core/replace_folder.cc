#include "core/replace_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "core/file.h"
#include "core/name_list.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Temporary suffix of the old folder on a file system that cannot exchange two folders.
constexpr std::string_view kReplacedSuffix = ".millrace-replaced";

std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Files and empty folders in a folder, as relative names. Does not follow links, because the links themselves would be
/// removed.
Result<std::vector<std::string>> FilesBelow(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::file_type type = entry->symlink_status(error).type();
    if (error) break;
    if (type == fs::file_type::directory && !fs::is_empty(entry->path(), error)) continue;
    files.push_back(entry->path().lexically_relative(folder).string());
  }
  if (error) return IoError("cannot read the folder \"" + folder + "\": " + error.message());
  return files;
}

Status NoFolderNamed() { return InvalidConfig("no folder is named"); }

}  // namespace

Status MakeFolder(const std::string& path) {
  if (path.empty()) return NoFolderNamed();
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? IoError("cannot make the folder \"" + path + "\": " + error.message()) : Status::Ok();
}

Status ReplaceFolder(const std::string& from, const std::string& to) {
  const std::string what = "cannot rename \"" + from + "\" to \"" + to + "\"";
  if (rename(from.c_str(), to.c_str()) == 0) return Status::Ok();
  // For other failures an exchange would only hide the reason.
  if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return IoErrorFromErrno(what, errno);
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return RemoveFolder(from);
  if (errno != EINVAL && errno != ENOSYS) return IoErrorFromErrno(what, errno);
  const std::string old = to + std::string(kReplacedSuffix);
  MR_TRY(RemoveFolder(old));
  if (rename(to.c_str(), old.c_str()) != 0) return IoErrorFromErrno(what, errno);
  if (rename(from.c_str(), to.c_str()) == 0) return RemoveFolder(old);
  Status failed = IoErrorFromErrno(what, errno);
  if (rename(old.c_str(), to.c_str()) == 0) return failed;
  return IoError(failed.message() + "; what was there is now \"" + old + "\"");
}

Status WriteFolder(const std::string& to, const SavedFolder& saved,
                   const std::function<Status(const std::string& folder)>& write) {
  // Treat "model/" like "model", so that the temporary folder is next to it.
  std::string place = to;
  while (place.size() > 1 && place.back() == '/') place.pop_back();
  MR_TRY(CheckReplaced(place, saved));
  const std::string beside = place + std::string(kUnfinishedSuffix);
  MR_TRY(RemoveFolder(beside));
  MR_TRY(MakeFolder(beside));
  Status status = write(beside);
  if (status.ok()) status = SyncFolder(beside);
  // A user may have added a file during the writing.
  if (status.ok()) status = CheckReplaced(place, saved);
  if (status.ok()) status = ReplaceFolder(beside, place);
  std::error_code error;
  if (!status.ok()) std::filesystem::remove_all(beside, error);
  if (status.ok()) status = SyncFolder(FolderOf(place));
  return status;
}

Status CheckReplaced(const std::string& folder, const SavedFolder& saved) {
  if (folder.empty()) return NoFolderNamed();
  std::error_code error;
  const fs::file_type type = fs::symlink_status(folder, error).type();
  if (type == fs::file_type::not_found) return Status::Ok();
  if (error) return IoError("cannot look at \"" + folder + "\": " + error.message());
  if (!fs::is_directory(folder, error)) {
    return InvalidConfig("\"" + folder + "\" is a file, and " + saved.kind +
                         " is a folder: move the file, or choose another name");
  }
  MR_ASSIGN(std::vector<std::string> others, FilesBelow(folder));
  if (others.empty()) return Status::Ok();
  const std::set<std::string> known = saved.files(folder);
  std::erase_if(others, [&known](const std::string& file) { return known.contains(file); });
  if (others.empty()) return Status::Ok();
  std::sort(others.begin(), others.end());
  return InvalidConfig("\"" + folder + "\" contains files that are not part of " + saved.kind + " (" +
                       FirstNames(others) + "), and saving would delete them: move them, or choose another folder");
}

Status RemoveFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? IoError("cannot remove \"" + path + "\": " + error.message()) : Status::Ok();
}

}  // namespace millrace
