#include "core/stderr_tail.h"

#include <unistd.h>

#include <algorithm>

namespace millrace {
namespace {

constexpr size_t kKeptLines = 10;
constexpr size_t kLongestLine = 2000;

}  // namespace

void StderrTail::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() < kLongestLine) line_.append(part.substr(0, kLongestLine - line_.size()));
    if (end == std::string_view::npos) return;
    EndLine();
    bytes.remove_prefix(end + 1);
  }
}

void StderrTail::Finish() {
  if (!line_.empty()) EndLine();
}

void StderrTail::EndLine() {
  const std::string echo = label_ + ": " + line_ + "\n";
  // One write, so that lines of several commands do not mix. A closed stderr of ours is no reason to stop.
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, echo.data(), echo.size());
  if (last_.size() == kKeptLines) last_.pop_front();
  last_.push_back(std::move(line_));
  line_.clear();
}

std::string StderrTail::ForMessage() const {
  if (last_.empty()) return {};
  std::string text = "\n  the command's last lines on stderr:";
  for (const std::string& line : last_) text += "\n    " + line;
  return text;
}

}  // namespace millrace
