#include "config/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/edit_distance.h"
#include "core/folder_entries.h"

namespace millrace {

namespace fs = std::filesystem;

std::string ExplainMissingFile(const std::string& path) {
  // The first part of the path that is not there is the one to talk about.
  fs::path known;
  for (const fs::path& part : fs::path(path)) {
    std::error_code error;
    if (part.empty() || fs::exists(fs::status(known / part, error))) {
      known /= part;
      continue;
    }
    if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
      return "\"" + path + "\" cannot be read: " + error.message() +
             (known / part == fs::path(path) ? "" : ", at \"" + (known / part).string() + "\"");
    }
    if (fs::is_symlink(known / part, error)) {
      const fs::path target = fs::read_symlink(known / part, error);
      return "the link \"" + (known / part).string() + "\" leads to \"" + target.string() + "\", which is not there";
    }
    const bool last = (known / part).lexically_normal() == fs::path(path).lexically_normal();
    std::vector<std::string> names;
    if (const auto entries = EntriesIn(known.empty() ? "." : known.string()); entries.ok()) {
      for (const fs::directory_entry& entry : *entries) {
        std::error_code ignored;
        if (entry.is_directory(ignored) != last) names.push_back(entry.path().filename().string());
      }
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
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return InvalidConfig("is UTF-16; save it as UTF-8");
  }
  if (const size_t nul = text.find('\0'); nul != std::string::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(nul), '\n');
    return InvalidConfig("is no text (there is a NUL byte in line " + std::to_string(line) +
                         "); text in UTF-8 is expected");
  }
  return text;
}

}  // namespace millrace
