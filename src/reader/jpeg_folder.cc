#include "reader/jpeg_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/folder_entries.h"
#include "core/numbers.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// The entries of a folder by kind, sorted by name.
struct FolderEntries {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

Result<FolderEntries> EntriesOf(const fs::path& folder) {
  FolderEntries entries;
  MR_ASSIGN(const auto all, EntriesIn(folder.string()));
  for (const fs::directory_entry& entry : all) {
    std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code gone;  // a broken link
    if (entry.is_directory(gone)) {
      entries.folders.push_back(std::move(name));
    } else if (entry.is_regular_file(gone)) {
      entries.files.push_back(std::move(name));
    } else {
      return InvalidConfig(entry.path().string() + ": neither a file nor a folder; pictures are files");
    }
  }
  std::sort(entries.files.begin(), entries.files.end());
  std::sort(entries.folders.begin(), entries.folders.end());
  return entries;
}

std::optional<int64_t> NumberNamed(std::string_view name) {
  int64_t number = 0;
  return ReadWhole(name, &number) && number >= 0 ? std::optional(number) : std::nullopt;
}

/// The labels of classes, in order.
std::vector<int64_t> LabelsOf(const std::vector<std::string>& classes) {
  std::vector<int64_t> labels;
  for (const std::string& name : classes) {
    if (const std::optional<int64_t> number = NumberNamed(name)) labels.push_back(*number);
  }
  if (labels.size() == classes.size()) return labels;
  labels.resize(classes.size());
  for (size_t i = 0; i < classes.size(); ++i) labels[i] = static_cast<int64_t>(i);
  return labels;
}

/// The label of pictures directly in `folder`; an empty path is the working directory.
Result<int64_t> LabelNamedBy(const fs::path& folder) {
  std::error_code error;
  fs::path whole = fs::absolute(folder.empty() ? "." : folder, error).lexically_normal();
  if (error) {
    return IoError("the pictures in \"" + folder.string() +
                   "\" have no label, as the path of their folder cannot be told: " + error.message() +
                   "; give the whole path");
  }
  if (!whole.has_filename()) whole = whole.parent_path();
  const std::string name = whole.filename().string();
  if (const std::optional<int64_t> number = NumberNamed(name)) return *number;
  return InvalidConfig("the pictures in \"" + (folder.empty() ? "." : folder.string()) +
                       "\" have no label: put them into folders of their classes, or name their folder by the number "
                       "of its class, or leave the output of labels away; the folder's name is \"" +
                       name + "\"");
}

Result<std::vector<LabelledPicture>> PicturesOfClasses(const fs::path& folder,
                                                       const std::vector<std::string>& classes) {
  const std::vector<int64_t> labels = LabelsOf(classes);
  std::vector<LabelledPicture> pictures;
  for (size_t i = 0; i < classes.size(); ++i) {
    const fs::path of_class = folder / classes[i];
    MR_ASSIGN(const FolderEntries entries, EntriesOf(of_class));
    if (!entries.folders.empty()) {
      return InvalidConfig("\"" + of_class.string() + "\" is the folder of a class and holds another folder, \"" +
                           entries.folders.front() + "\": pictures lie in the folder of their class itself");
    }
    for (const std::string& name : entries.files) pictures.push_back({(of_class / name).string(), labels[i]});
  }
  return pictures;
}

Result<std::vector<LabelledPicture>> PicturesOfFolder(const fs::path& folder, bool wants_labels) {
  MR_ASSIGN(const FolderEntries entries, EntriesOf(folder));
  if (!entries.files.empty() && !entries.folders.empty()) {
    return InvalidConfig("\"" + folder.string() + "\" holds pictures (\"" + entries.files.front() +
                         "\") beside folders (\"" + entries.folders.front() +
                         "\"): all of them belong into folders of their classes, or none");
  }
  if (!entries.folders.empty()) return PicturesOfClasses(folder, entries.folders);
  std::vector<LabelledPicture> pictures;
  int64_t label = 0;
  if (wants_labels && !entries.files.empty()) {
    MR_ASSIGN(label, LabelNamedBy(folder));
  }
  for (const std::string& name : entries.files) pictures.push_back({(folder / name).string(), label});
  return pictures;
}

}  // namespace

Result<std::vector<LabelledPicture>> ListPictures(const std::string& path, bool wants_labels) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return NotFound("no such file or folder: \"" + path + "\"");
  if (fs::is_directory(status)) {
    MR_ASSIGN(std::vector<LabelledPicture> pictures, PicturesOfFolder(path, wants_labels));
    if (pictures.empty()) return NotFound("there are no pictures in the folder \"" + path + "\"");
    return pictures;
  }
  if (!fs::is_regular_file(status)) {
    return IoError("cannot read \"" + path + "\": " + (error ? error.message() : "it is neither a file nor a folder"));
  }
  int64_t label = 0;
  if (wants_labels) {
    MR_ASSIGN(label, LabelNamedBy(fs::path(path).parent_path()));
  }
  return std::vector<LabelledPicture>{{path, label}};
}

}  // namespace millrace
