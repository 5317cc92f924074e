#include "e2e/small_job.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/hash.h"
#include "datafeed/write_format.h"
#include "paths.h"
#include "table/ctr_rows.h"
#include "table/table_io.h"

namespace millrace {
namespace {

/// A part of a job, which the campaigns have as well.
std::string Text(const std::string& name) { return ReadFile(SourceDir() + "/tests/jobs/" + name).value(); }

}  // namespace

SmallJob::SmallJob(int lines, int files, const std::string& format)
    : folder_(TempDir::Create("small_job").value()), lines_(lines), files_(files), format_(format) {
  for (int f = 0; f < files; ++f) {
    std::vector<std::string> rows;
    std::string text;
    for (int i = lines * f / files; i < lines * (f + 1) / files; ++i) {
      const uint64_t a = HashedNumber(7, static_cast<uint64_t>(i)) % 50;
      const uint64_t b = HashedNumber(8, static_cast<uint64_t>(i)) % 500;
      const std::string label = a % 3 == 0 ? "1" : "0";
      const std::string uid = std::to_string(i + 1);
      const std::string one = std::to_string(a + 1);
      const std::string two = std::to_string(b + 1);
      const std::string three = std::to_string(a + b + 2);
      text += "1 " + label + " 1 1 1 " + uid + " 1 " + one + " 2 " + two + " " + three + "\n";
      rows.push_back("label=" + label + ". ones=1. uid=" + uid + " A=" + one + " B=" + two + "," + three);
    }
    if (format.empty()) {
      std::ofstream(this->files()[static_cast<size_t>(f)]) << text;
    } else {
      WriteFormat(this->files()[static_cast<size_t>(f)], format, rows);
    }
  }
}

std::vector<std::string> SmallJob::files() const {
  std::vector<std::string> names;
  for (int f = 0; f < files_; ++f) names.push_back(folder() + "/part-" + std::to_string(f));
  return names;
}

std::string SmallJob::DeepJob(const std::string& extra) const {
  return Write("deep.prototxt", DataDesc(32) + Text("deep_model.pbtxt") +
                                    R"(
fetch_config { fetch_var_names: "loss" fetch_var_names: "auc" print_period: 3 }
)" + extra);
}

std::string SmallJob::WideJob(const std::string& extra) const {
  const std::string path = DeepJob(extra);
  std::string text = ReadFile(path).value();
  const std::string dim = "dim: 4 ";
  text.replace(text.find(dim), dim.size(), "dim: 16384 ");
  std::ofstream(path) << text;
  return path;
}

std::string SmallJob::CtrJob(const std::string& extra) const {
  return Write("ctr.prototxt", DataDesc(32) + Text("ctr_model.pbtxt") +
                                   "\nfetch_config { fetch_var_names: \"loss\" print_period: 3 }\n" + extra);
}

std::map<uint64_t, std::pair<float, float>> SmallJob::Counts(int epochs) const {
  std::map<uint64_t, std::pair<float, float>> counts;
  for (const std::string& file : files()) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::vector<uint64_t> numbers;
      for (uint64_t number = 0; words >> number;) numbers.push_back(number);
      for (const size_t i : {7, 9, 10}) {
        counts[numbers[i]].first += static_cast<float>(epochs);
        counts[numbers[i]].second += static_cast<float>(numbers[1]) * static_cast<float>(epochs);
      }
    }
  }
  return counts;
}

std::string SmallJob::CountingJob(const std::string& extra) const {
  return Write("counting.prototxt", DataDesc(1) + Text("counting_model.pbtxt") + extra);
}

std::string SmallJob::DataDesc(int batch_size) const {
  std::string name = format_.empty() ? "" : "name: \"" + format_ + "\" ";
  std::string plugins;
  if (format_ == "rows") {
    name += "attrs { name: \"key\" value: \"" + std::to_string(kRowsKey) + "\" } ";
    plugins = "plugins: \"" + TestPluginDir() + "/rows.so\"\n";
  }
  if (format_ == "words") plugins = "plugins: \"" + TestPluginDir() + "/words.so\"\n";
  return plugins + "data_desc { " + name + "batch_size: " + std::to_string(batch_size) + "\n" + Text("slots.pbtxt") +
         "}\n";
}

std::string SmallJob::Write(const std::string& name, const std::string& text) const {
  std::ofstream out(folder() + "/" + name);
  out << text << "\n";
  const bool has_files = text.find("\nfilelist:") != std::string::npos || text.find("incremental") != std::string::npos;
  if (has_files) return folder() + "/" + name;
  for (const std::string& file : files()) out << "filelist: \"" << file << "\"\n";
  return folder() + "/" + name;
}

std::map<uint64_t, std::pair<float, float>> CountsIn(const std::string& file) {
  std::map<uint64_t, std::pair<float, float>> counts;
  std::ifstream in(file, std::ios::binary);
  TableReader reader = TableReader::Open(in).value();
  for (const TableBlock* block = reader.Next().value(); block != nullptr; block = reader.Next().value()) {
    for (size_t i = 0; i < block->keys.size(); ++i) {
      const float* row = block->values.data() + i * reader.header().row_floats;
      counts[block->keys[i]] = {row[CtrRows::kShow], row[CtrRows::kClick]};
    }
  }
  return counts;
}

std::pair<int, int> CountCheckpointsWith(const std::string& out, const std::string& path) {
  std::pair<int, int> counts;
  for (const auto& entry : std::filesystem::directory_iterator(out + "/checkpoints")) {
    if (!entry.is_directory()) continue;
    counts.first += std::filesystem::exists(entry.path() / path) ? 1 : 0;
    ++counts.second;
  }
  return counts;
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
