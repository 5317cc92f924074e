#include "core/folder_names.h"

#include <filesystem>

namespace millrace {

Result<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return IoError("cannot read the folder \"" + folder + "\": " + error.message());
  return names;
}

}  // namespace millrace
