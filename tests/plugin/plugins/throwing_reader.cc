// A file format of the C++ tier whose files say where it throws.

#include <stdexcept>

#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

class ThrowingReader : public FileReader {
 public:
  ThrowingReader(const std::string& file, const std::vector<TensorSpec>& shapes) : FileReader(file, shapes) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>*, const std::stop_token&) override {
    if (file().ends_with("read.throwing")) throw std::runtime_error("thrown by a read");
    return false;
  }
  Status Rewind() override { throw 7; }
};

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  FileFormat format;
  format.tag = "throwing";
  format.suffixes = {".throwing"};
  format.doc = "nothing";
  format.open = [](const std::string& file, const std::vector<TensorSpec>& shapes) {
    if (file.ends_with("none.throwing")) return Result<std::unique_ptr<FileReader>>(nullptr);
    if (file.ends_with("open.throwing")) throw std::runtime_error("thrown by an open");
    return Result<std::unique_ptr<FileReader>>(std::make_unique<ThrowingReader>(file, shapes));
  };
  return registries.readers.Add(std::move(format));
}
