#include "dataset/dataset.h"

namespace millrace {

Status NothingTo(std::string_view what, const PassStats& read) {
  const auto count = [](int64_t n, const char* one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); };
  std::string found;
  if (read.bad_lines > 0) found = std::to_string(read.bad_lines) + " bad";
  for (const auto& [kind, times] : read.counters) {
    found += (found.empty() ? "" : "; ") + kind + " " + std::to_string(times);
  }
  return BadData("nothing to " + std::string(what) + ": no row came out of " + count(read.files, "file") + " with " +
                 count(read.lines, "line") + (found.empty() ? "" : " (" + found + ")"));
}

}  // namespace millrace
