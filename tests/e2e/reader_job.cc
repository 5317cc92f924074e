#include "e2e/reader_job.h"

#include <glog/logging.h>

#include <fstream>

#include "core/rng.h"
#include "paths.h"

namespace millrace {
namespace {

constexpr int kDimensions = 8;
constexpr int kCentres = 4;

std::string ConfigText(const std::string& name) {
  Result<std::string> text = ReadFile(SourceDir() + "/configs/readers/" + name);
  CHECK(text.ok()) << text.status().ToString();
  return std::move(text).value();
}

}  // namespace

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

ReaderJob::ReaderJob(int rows) : folder_(TempDir::Create("reader_job").value()) {
  Rng rng(1);
  for (int f = 0; f < 2; ++f) {
    std::ofstream out(file(f));
    for (int row = 0; row < rows; ++row) {
      const auto centre = static_cast<int>(rng.Below(kCentres));
      for (int k = 0; k < kDimensions; ++k) out << (k % kCentres == centre ? 1 : 0) + 2 * rng.Uniform() - 1 << ',';
      out << centre << '\n';
      labels_.push_back(centre);
    }
  }
}

std::string ReaderJob::Copy(const std::string& name, const std::string& extra,
                            const std::map<std::string, std::string>& replaced) const {
  const auto adapt = [&](std::string text) {
    text = Replaced(std::move(text), "build/readers", folder());
    text = Replaced(std::move(text), "configs/readers", folder());
    for (const auto& [from, to] : replaced) text = Replaced(std::move(text), from, to);
    return text;
  };
  const std::string programs = name == "dataset" ? "step" : name;
  for (const std::string part : {"_main.pbtxt", "_startup.pbtxt"}) {
    std::ofstream(folder() + "/" + programs + part) << adapt(ConfigText(programs + part));
  }
  const std::string path = folder() + "/" + name + ".prototxt";
  std::ofstream(path) << adapt(ConfigText(name + ".prototxt")) << extra << '\n';
  return path;
}

void ReaderJob::ReadWithoutLoop() const {
  std::ofstream(folder() + "/has_next_main.pbtxt") << Replaced(
      ConfigText("step_main.pbtxt"), "parent_idx: -1\n",
      "parent_idx: -1\n  vars { name: \"batches\" persistable: true type { type: READER } }\n"
      "  ops { type: \"read\" inputs { parameter: \"Reader\" arguments: \"batches\" } outputs { parameter: \"Out\" "
      "arguments: \"x\" arguments: \"label\" } }\n");
}

}  // namespace millrace
