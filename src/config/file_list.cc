#include "config/file_list.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "config/text_file.h"
#include "core/folder_entries.h"
#include "core/lower_case.h"
#include "core/utf8.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

bool IsGlob(std::string_view name) { return name.find_first_of("*?[") != std::string_view::npos; }

std::string Trimmed(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
}

/// Writes entries out, one after another.
class FileExpansion {
 public:
  FileExpansion(Diagnostics* diagnostics, std::stop_token stop) : diagnostics_(diagnostics), stop_(std::move(stop)) {}

  void Entry(const std::string& entry, const std::string& folder, SourceSpan where) {
    if (Trimmed(entry).empty()) return diagnostics_->Error(where, "a file name is empty");
    if (HasScheme(entry)) return Add(entry, where);
    if (entry[0] == '@') return List(Below(folder, entry.substr(1)), where);
    const std::string path = Below(folder, entry);
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) return Folder(path, where);
    if (fs::exists(status)) return File(path, status.type(), where);
    if (IsGlob(path)) return Glob(path, where);
    diagnostics_->InputError(where, ExplainMissingFile(path));
  }

  ExpandedFiles Take() { return std::move(files_); }

 private:
  using Found = std::vector<std::pair<std::string, fs::file_type>>;

  static std::string Below(const std::string& folder, const std::string& name) {
    return folder.empty() || name.starts_with('/') ? name : (fs::path(folder) / name).string();
  }

  void Add(const std::string& file, SourceSpan where) {
    const bool first_time = seen_.insert(IdentityOf(file)).second;
    if (!first_time) {
      diagnostics_->Warning(where,
                            "\"" + file + "\" is named more than once, or by a link: its lines are read each time");
    }
    files_.names.push_back(file);
  }

  void File(const std::string& path, fs::file_type type, SourceSpan where) {
    if (access(path.c_str(), R_OK) != 0) {
      if (errno == ENOENT) return diagnostics_->InputError(where, ExplainMissingFile(path));
      return diagnostics_->InputError(where, "\"" + path + "\" cannot be read: " + std::strerror(errno));
    }
    Add(path, where);
    const bool is_pipe = type == fs::file_type::fifo;
    if (!is_pipe && type != fs::file_type::character && type != fs::file_type::socket) return;
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) files_.read_once.push_back({path, is_pipe, {info.st_dev, info.st_ino}});
  }

  void Files(Found found, SourceSpan where) {
    std::sort(found.begin(), found.end());
    for (const auto& [path, type] : found) {
      if (stop_.stop_requested()) return;
      File(path, type, where);
    }
  }

  void Folder(const std::string& path, SourceSpan where) {
    const auto entries = EntriesIn(path);
    if (!entries.ok()) return diagnostics_->InputError(where, entries.status().message());
    Found found;
    bool has_folders = false;
    for (const fs::directory_entry& entry : *entries) {
      const std::string name = entry.path().filename().string();
      std::error_code ignored;
      if (name.starts_with('.') || name == "_SUCCESS" || name == "_logs") continue;
      if (entry.is_directory(ignored)) {
        has_folders = true;
        continue;
      }
      const bool is_plain = entry.is_regular_file(ignored);
      found.emplace_back(entry.path().string(), is_plain ? fs::file_type::regular : entry.status(ignored).type());
    }
    if (found.empty()) {
      return diagnostics_->InputError(
          where,
          "the folder \"" + path + "\" holds no files" +
              (has_folders
                   ? ", and folders in it are not looked into: name them (the format jpeg takes \"jpeg:" + path + "\")"
                   : ""));
    }
    Files(std::move(found), where);
  }

  void Glob(const std::string& pattern, SourceSpan where) {
    glob_t matches = {};
    const int result = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
    Found found;
    for (size_t i = 0; i < matches.gl_pathc && !stop_.stop_requested(); ++i) {
      std::error_code ignored;
      const fs::file_type type = fs::status(matches.gl_pathv[i], ignored).type();
      if (type != fs::file_type::directory) found.emplace_back(matches.gl_pathv[i], type);
    }
    if (stop_.stop_requested()) return globfree(&matches);
    const std::string only_folder = matches.gl_pathc > 0 && found.empty() ? matches.gl_pathv[0] : "";
    globfree(&matches);
    if (result != 0 && result != GLOB_NOMATCH) {
      return diagnostics_->InputError(where, "\"" + pattern + "\" cannot be searched: " + std::strerror(errno));
    }
    if (found.empty()) return diagnostics_->InputError(where, ExplainNoMatch(pattern, only_folder));
    Files(std::move(found), where);
  }

  /// `only_folder`: the first match, when all are folders.
  static std::string ExplainNoMatch(const std::string& pattern, const std::string& only_folder) {
    if (!only_folder.empty()) {
      return "\"" + pattern + "\" matches folders only, such as \"" + only_folder + "\"; name the files in them: \"" +
             pattern + "/*\"";
    }
    std::string message = "\"" + pattern + "\" matches no file";
    const fs::path folder = fs::path(pattern).parent_path();
    std::error_code error;
    const std::string searched = folder.empty() ? "." : folder.string();
    if (fs::is_directory(searched, error) && access(searched.c_str(), R_OK | X_OK) != 0) {
      return message + ": the folder \"" + searched + "\" cannot be read: " + std::strerror(errno);
    }
    if (folder.empty() || IsGlob(folder.string()) || fs::exists(folder, error)) return message;
    return message + ": " + ExplainMissingFile(folder.string() + "/");
  }

  void List(const std::string& path, SourceSpan where) {
    const std::string name = fs::path(path).lexically_normal().string();
    // They would go on for ever.
    if (std::find(open_lists_.begin(), open_lists_.end(), name) != open_lists_.end()) {
      return diagnostics_->Error(where, "\"@" + path + "\": file lists name each other");
    }
    Result<std::string> text = ReadTextFile(path);
    if (!text.ok()) {
      return diagnostics_->InputError(where, "the file list \"" + path + "\": " + text.status().message());
    }
    const int source = diagnostics_->AddSource(path, *text);
    const std::string folder = fs::path(path).parent_path().string();
    size_t entries = 0;
    open_lists_.push_back(name);
    for (size_t begin = text->size() - WithoutByteOrderMark(*text).size();
         begin < text->size() && !stop_.stop_requested();) {
      const size_t end = std::min(text->find('\n', begin), text->size());
      const std::string entry = Trimmed(std::string_view(*text).substr(begin, end - begin));
      if (!entry.empty() && entry[0] != '#') {
        ++entries;
        const size_t start = text->find(entry[0], begin);
        Entry(entry, folder, diagnostics_->Span(source, start, start + entry.size()));
      }
      begin = end + 1;
    }
    open_lists_.pop_back();
    if (entries == 0 && !stop_.stop_requested())
      diagnostics_->InputError(where, "the file list \"" + path + "\" names no files");
  }

  Diagnostics* const diagnostics_;
  const std::stop_token stop_;
  ExpandedFiles files_;
  std::set<std::string> seen_;
  std::vector<std::string> open_lists_;  // that are being read, the innermost last
};

}  // namespace

std::string IdentityOf(const std::string& file) {
  struct stat found {};
  if (HasScheme(file)) return file;
  if (::stat(file.c_str(), &found) != 0) return fs::path(file).lexically_normal().string();
  return std::to_string(found.st_dev) + " " + std::to_string(found.st_ino);
}

ExpandedFiles ExpandFileList(const std::vector<std::string>& entries, std::string_view path,
                             const FieldPositions& positions, Diagnostics* diagnostics, const std::stop_token& stop) {
  FileExpansion expansion(diagnostics, stop);
  for (size_t i = 0; i < entries.size() && !stop.stop_requested(); ++i) {
    const SourceSpan where = positions.Find(ElementPath(path, i));
    expansion.Entry(entries[i], "", where);
  }
  return expansion.Take();
}

bool HasScheme(std::string_view name) {
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  if (!IsLetter(name[0])) return false;
  return std::all_of(name.begin(), name.begin() + static_cast<ptrdiff_t>(colon),
                     [](char c) { return IsLetterOrDigit(c) || c == '+' || c == '-' || c == '.'; });
}

}  // namespace millrace
