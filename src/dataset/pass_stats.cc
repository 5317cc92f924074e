#include <filesystem>

#include "data_feed.pb.h"
#include "datafeed/input_opener.h"
#include "dataset/dataset.h"

namespace millrace {

namespace {

/// The bytes of plain files; 0 when there are none, or of names that a command reads.
uint64_t BytesOf(const std::vector<std::string>& files) {
  uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace

Status NothingTo(std::string_view what, const PassStats& read, const DataFeedDesc& desc,
                 const std::vector<std::string>& files) {
  const auto count = [](int64_t n, const char* one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); };
  const std::string_view command = PipeCommandOf(desc);
  const uint64_t bytes_in = command.empty() || read.bytes > 0 || read.files == 0 ? 0 : BytesOf(files);
  if (bytes_in > 0) {
    return BadData("nothing to " + std::string(what) + ": pipe_command " + ShownCommand(command) +
                   " wrote nothing for " + (read.files == 1 ? "its file" : "any of " + count(read.files, "file")) +
                   ", and said that all is well: exit code 0, " + std::to_string(bytes_in) +
                   " bytes in, 0 bytes out; see by hand what it makes of " + files[0]);
  }
  std::string found;
  if (read.bad_lines > 0) found = std::to_string(read.bad_lines) + " bad";
  for (const auto& [kind, times] : read.counters) {
    found += (found.empty() ? "" : "; ") + kind + " " + std::to_string(times);
  }
  return BadData("nothing to " + std::string(what) + ": no row came out of " + count(read.files, "file") + " with " +
                 count(read.lines, "line") + (found.empty() ? "" : " (" + found + ")") +
                 (command.empty() ? "" : ", as pipe_command " + ShownCommand(command) + " wrote them"));
}

}  // namespace millrace
