#include "config/text_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/edit_distance.h"

namespace millrace {

namespace fs = std::filesystem;

std::string ExplainMissingFile(const std::string& path) {
  // The first part of the path that is not there is the one to talk about.
  fs::path known;
  for (const fs::path& part : fs::path(path)) {
    std::error_code error;
    if (fs::exists(known / part, error) || part.empty()) {
      known /= part;
      continue;
    }
    const bool last = (known / part).lexically_normal() == fs::path(path).lexically_normal();
    std::vector<std::string> names;
    const fs::path folder = known.empty() ? fs::path(".") : known;
    for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
      std::error_code ignored;
      if (i->is_directory(ignored) != last) names.push_back(i->path().filename().string());
    }
    std::string message = std::string(last ? "no file \"" : "no folder \"") + part.string() + "\"";
    if (!known.empty()) message += " in " + known.string();
    return message + DidYouMean(part.string(), std::vector<std::string_view>(names.begin(), names.end()));
  }
  return "no file \"" + path + "\"";
}

Result<std::string> ReadTextFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
      return InvalidConfig("cannot be read: " + error.message());
    }
    return InvalidConfig(ExplainMissingFile(path));
  }
  if (fs::is_directory(status)) return InvalidConfig("is a folder, not a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return InvalidConfig(std::string("cannot be read: ") + std::strerror(errno));
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad()) return InvalidConfig(std::string("cannot be read: ") + std::strerror(errno));
  std::string text = std::move(content).str();
  if (text.find('\0') != std::string::npos) {
    return InvalidConfig("is no text (it holds NUL bytes); a prototxt in UTF-8 is expected");
  }
  return text;
}

}  // namespace millrace
