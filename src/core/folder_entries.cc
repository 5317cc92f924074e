#include "core/folder_entries.h"

namespace millrace {

Result<std::vector<std::filesystem::directory_entry>> EntriesIn(const std::string& folder) {
  std::vector<std::filesystem::directory_entry> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(*entry);
  }
  if (error) return IoError("cannot read the folder \"" + folder + "\": " + error.message());
  return entries;
}

Result<std::vector<std::string>> NamesIn(const std::string& folder) {
  MR_ASSIGN(const std::vector<std::filesystem::directory_entry> entries, EntriesIn(folder));
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.path().filename().string());
  return names;
}

}  // namespace millrace
