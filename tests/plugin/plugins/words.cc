// A file format of the C++ tier, registered once: an example a line, of an output's values between commas each.

#include <algorithm>
#include <fstream>
#include <sstream>

#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

class WordsReader : public FileReader {
 public:
  WordsReader(const std::string& file, const std::vector<TensorSpec>& shapes)
      : FileReader(file, shapes), lines_(file) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token&) override {
    std::string line;
    if (!std::getline(lines_, line)) return false;
    std::istringstream words(line);
    for (size_t i = 0; i < out->size(); ++i) {
      std::string word;
      words >> word;
      std::istringstream list(word);
      std::vector<double> values;
      for (std::string value; std::getline(list, value, ',');) values.push_back(std::stod(value));
      if (shapes()[i].lod_level == 0 && values.size() != InstanceSize(shapes()[i])) {
        return BadData("\"" + word + "\" has " + std::to_string(values.size()) + " values, and output " +
                       std::to_string(i) + " takes " + std::to_string(InstanceSize(shapes()[i])));
      }
      void* const to = ResizeToInstance(shapes()[i], values.size(), &(*out)[i]);
      if (shapes()[i].dtype == DType::kInt64) {
        std::transform(values.begin(), values.end(), static_cast<int64_t*>(to),
                       [](double value) { return static_cast<int64_t>(value); });
      } else {
        std::transform(values.begin(), values.end(), static_cast<float*>(to),
                       [](double value) { return static_cast<float>(value); });
      }
    }
    return true;
  }
  Status Rewind() override {
    lines_ = std::ifstream(file());
    return Status::Ok();
  }

  std::ifstream lines_;
};

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  FileFormat format;
  format.tag = "words";
  format.doc = "a line of words, each the values of an output between commas";
  format.open = [](const std::string& file, const std::vector<TensorSpec>& shapes) {
    return Result<std::unique_ptr<FileReader>>(std::make_unique<WordsReader>(file, shapes));
  };
  return registries.readers.Add(std::move(format));
}
