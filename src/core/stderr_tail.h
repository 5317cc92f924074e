#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace millrace {

/// Takes what a command writes to stderr: passes each line on to our stderr behind "LABEL: " and keeps the last ones.
///
/// One thread. Memory is bounded: long lines are cut.
class StderrTail {
 public:
  explicit StderrTail(std::string label) : label_(std::move(label)) {}

  void Append(std::string_view bytes);
  /// Ends a last line that has no '\n'.
  void Finish();
  /// "\n    LINE" for each kept line behind a heading; empty when nothing was written.
  std::string ForMessage() const;

 private:
  void EndLine();

  std::string label_;
  std::string line_;
  std::deque<std::string> last_;
};

}  // namespace millrace
