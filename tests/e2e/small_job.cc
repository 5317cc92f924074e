#include "e2e/small_job.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/hash.h"
#include "paths.h"

namespace millrace {
namespace {

/// A part of a job, which the campaigns have as well.
std::string Text(const std::string& name) { return ReadFile(SourceDir() + "/tests/jobs/" + name).value(); }

}  // namespace

SmallJob::SmallJob(int lines, int files) : folder_(TempDir::Create("small_job").value()), lines_(lines), files_(files) {
  for (int f = 0; f < files; ++f) {
    std::ofstream out(folder() + "/part-" + std::to_string(f));
    for (int i = lines * f / files; i < lines * (f + 1) / files; ++i) {
      const uint64_t a = HashedNumber(7, static_cast<uint64_t>(i)) % 50;
      const uint64_t b = HashedNumber(8, static_cast<uint64_t>(i)) % 500;
      out << "1 " << (a % 3 == 0 ? 1 : 0) << " 1 1 1 " << i + 1 << " 1 " << a + 1 << " 2 " << b + 1 << ' ' << a + b + 2
          << '\n';
    }
  }
}

std::vector<std::string> SmallJob::files() const {
  std::vector<std::string> names;
  for (int f = 0; f < files_; ++f) names.push_back(folder() + "/part-" + std::to_string(f));
  return names;
}

std::string SmallJob::DeepJob(const std::string& extra) const {
  return Write("deep.prototxt", "data_desc { batch_size: 32\n" + Text("slots.pbtxt") + "}\n" +
                                    Text("deep_model.pbtxt") +
                                    R"(
fetch_config { fetch_var_names: "loss" fetch_var_names: "auc" print_period: 3 }
)" + extra);
}

std::string SmallJob::CountingJob(const std::string& extra) const {
  return Write("counting.prototxt",
               "data_desc { batch_size: 1\n" + Text("slots.pbtxt") + "}\n" + Text("counting_model.pbtxt") + extra);
}

std::string SmallJob::Write(const std::string& name, const std::string& text) const {
  std::ofstream out(folder() + "/" + name);
  out << text << "\n";
  const bool has_files = text.find("\nfilelist:") != std::string::npos || text.find("incremental") != std::string::npos;
  if (has_files) return folder() + "/" + name;
  for (const std::string& file : files()) out << "filelist: \"" << file << "\"\n";
  return folder() + "/" + name;
}

std::vector<std::string> FolderContent(const std::string& folder) {
  std::vector<std::string> content;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().string();
    content.push_back(path.substr(folder.size()) + "\n" + ReadFile(path).value());
  }
  std::sort(content.begin(), content.end());
  return content;
}

}  // namespace millrace
