#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "checkpoint.pb.h"
#include "core/checksummed_file.h"
#include "fuzz/demand.h"
#include "runtime/variable_store.h"

namespace millrace {

/// A temporary folder whose files an input describes. It goes with the object.
class FuzzFolder {
 public:
  FuzzFolder() : path_((std::filesystem::temp_directory_path() / "fuzz-XXXXXX").string()) {
    Demand(mkdtemp(path_.data()) != nullptr, "no temporary folder");
  }
  ~FuzzFolder() { std::filesystem::remove_all(path_); }
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  const std::string& path() const { return path_; }

  void Write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = path_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }

  /// Replaces all files by those of `input`: of each a byte for which of `names` it is, the two bytes of its length,
  /// and its content; a last one may be cut off. A name that comes twice has the later content.
  void Unpack(std::initializer_list<const char*> names, std::string_view input) const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove_all(entry.path());
    while (input.size() >= 3) {
      const auto byte = [&](size_t i) { return static_cast<unsigned char>(input[i]); };
      const char* name = names.begin()[byte(0) % names.size()];
      const size_t length = byte(1) + size_t{256} * byte(2);
      input.remove_prefix(3);
      Write(name, input.substr(0, length));
      input.remove_prefix(std::min(length, input.size()));
    }
  }

  /// What a list says of files below `folder` becomes true of those that are there: no fuzzer guesses checksums.
  void PutSums(const std::string& folder, google::protobuf::RepeatedPtrField<StoredFile>* files) const {
    for (StoredFile& file : *files) {
      const std::string path = path_ + "/" + folder + "/" + file.name();
      std::error_code error;
      if (!std::filesystem::is_regular_file(path, error)) continue;
      const Result<FileSum> sum = SumOfFile(path);
      if (!sum.ok()) continue;
      PutSum(*sum, &file);
    }
  }

 private:
  std::string path_;
};

}  // namespace millrace
