#include "core/contained_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/plain_file.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// kBadData for problems of the name itself.
Status CannotLookAt(const std::string& path, const std::error_code& error) {
  Status status = IoErrorFromErrno("cannot look at \"" + path + "\"", error.value());
  const bool is_named_so = error == std::errc::filename_too_long || error == std::errc::too_many_symbolic_link_levels;
  return is_named_so ? BadData(status.message()) : status;
}

bool LiesBelow(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

}  // namespace

bool StaysInFolder(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) return false;
  const fs::path path(name);
  return path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end();
}

bool MayBeThere(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) || error;
}

Result<std::string> FileInFolder(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (!StaysInFolder(name)) {
    return BadData("\"" + folder + "\" names a file \"" + name +
                   "\", which lies outside it; a folder's files lie in it");
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    // A broken link is not treated as a missing optional file.
    const bool is_link = fs::symlink_status(path, error).type() == fs::file_type::symlink;
    return is_link ? BadData("\"" + path + "\" is a link to a file that is not there; put the file itself there")
                   : NotFound("no such file: \"" + path + "\"");
  }
  if (error) return CannotLookAt(path, error);
  MR_TRY(CheckPlainFile(path));
  const fs::path real = fs::canonical(path, error);
  if (error) return CannotLookAt(path, error);
  const fs::path real_folder = fs::canonical(folder, error);
  if (error) return CannotLookAt(folder, error);
  if (!LiesBelow(real, real_folder)) {
    return BadData("\"" + path + "\" is a link to \"" + real.string() +
                   "\", outside the folder; put the file itself there");
  }
  return path;
}

}  // namespace millrace
