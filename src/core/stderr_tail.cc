#include "core/stderr_tail.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

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

void StderrTail::PassOn() {
  if (!std::exchange(holds_, false)) return;
  for (const std::string& line : last_) Echo(line);
}

std::string StderrTail::Text() const {
  std::string text;
  for (const std::string& line : last_) text += (text.empty() ? "" : "\n") + line;
  return text;
}

void StderrTail::Echo(const std::string& line) const {
  const std::string echo = label_ + ": " + line + "\n";
  // One write, so lines of several commands do not mix. A closed stderr is ignored.
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, echo.data(), echo.size());
}

void StderrTail::EndLine() {
  if (!holds_) Echo(line_);
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
