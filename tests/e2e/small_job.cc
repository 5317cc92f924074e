#include "e2e/small_job.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/hash.h"

namespace millrace {
namespace {

constexpr char kSlots[] = R"(
  multi_slot_desc {
    slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "ones" type: "float" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "uid" type: "uint64" is_used: true }
    slots { name: "A" type: "uint64" is_used: true }
    slots { name: "B" type: "uint64" is_used: true }
  }
)";

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
  return Write("deep.prototxt", R"(
data_desc { batch_size: 32 )" + std::string(kSlots) +
                                    R"(}
model {
  table { name: "t" dim: 4 key: SLOT_AND_ID init { uniform: 0.01 } optimizer { adagrad { lr: 0.05 } } initial_rows: 64 }
  layer { name: "e" embedding { slots: "A" slots: "B" table: "t" pool: SUM } }
  layer { name: "h" fc { in: "e" units: [16, 8] act: RELU } }
  layer { name: "y" fc { in: "h" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { adam { lr: 0.01 } }
  metric { kind: AUC }
  metric { kind: LOGLOSS }
  metric { kind: CALIBRATION }
  metric { kind: GAUC group: "B" }
}
fetch_config { fetch_var_names: "loss" fetch_var_names: "auc" print_period: 3 }
)" + extra);
}

std::string SmallJob::CountingJob(const std::string& extra) const {
  return Write("counting.prototxt", R"(
data_desc { batch_size: 1 )" + std::string(kSlots) +
                                        R"(}
model {
  table { name: "t" dim: 1 init { constant: 0 } optimizer { sgd { lr: 0.25 } } initial_rows: 64 }
  layer { name: "e" embedding { slots: "uid" table: "t" pool: SUM } }
  loss { kind: SQUARED_ERROR in: "e" label: "ones" }
  optimizer { sgd { lr: 0.25 } }
}
fetch_config { fetch_var_names: "loss" print_period: 25 }
)" + extra);
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
