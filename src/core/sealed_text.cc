#include "core/sealed_text.h"

#include <sys/stat.h>

#include <cstdint>

#include "core/crc32c.h"
#include "core/file.h"
#include "core/numbers.h"

namespace millrace {
namespace {

constexpr std::string_view kSumLine = "# crc32c of the bytes above: ";

}  // namespace

std::string SealText(std::string text) {
  const uint32_t sum = Crc32c(0, text.data(), text.size());
  return std::move(text) + std::string(kSumLine) + std::to_string(sum) + "\n";
}

Result<std::string> ReadSealedText(const std::string& path) {
  constexpr int64_t kMost = int64_t{1} << 31;  // limit of protobuf messages; a sparse file can claim any size
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && info.st_size > kMost) {
    return BadData("\"" + path + "\" is damaged: it has " + std::to_string(info.st_size) + " bytes");
  }
  Result<std::string> read = ReadFile(path);
  if (!read.ok()) return BadData(read.status().message());
  std::string& text = *read;
  const size_t at = text.rfind(kSumLine);
  if (at == std::string::npos || !text.ends_with('\n')) {
    return BadData("\"" + path + "\" is cut off: its last line has no checksum");
  }
  uint32_t sum = 0;
  const std::string_view digits = std::string_view(text).substr(at + kSumLine.size());
  if (!ReadWhole(digits.substr(0, digits.size() - 1), &sum) || sum != Crc32c(0, text.data(), at)) {
    return BadData("\"" + path + "\" is damaged: its checksum does not match");
  }
  text.resize(at);
  return read;
}

}  // namespace millrace
