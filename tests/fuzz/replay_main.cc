// Feeds files (those of folders, too) to a fuzz target, so that the corpus is tested by every build.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

int Replay(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) files += Replay(entry.path());
    return files;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) files += Replay(argv[i]);
  std::printf("%d inputs\n", files);
  return files > 0 ? 0 : 1;
}
