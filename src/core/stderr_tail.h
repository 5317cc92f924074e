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
  /// With `holds` lines are passed on by PassOn alone.
  StderrTail(std::string label, bool holds) : label_(std::move(label)), holds_(holds) {}

  void Append(std::string_view bytes);
  /// Ends a last line that has no '\n'.
  void Finish();
  /// Passes on the lines that are kept, where they were held back.
  void PassOn();
  /// "\n    LINE" for each kept line behind a heading; empty when nothing was written.
  std::string ForMessage() const;
  /// The lines that are kept.
  std::string Text() const;

 private:
  void EndLine();
  void Echo(const std::string& line) const;

  std::string label_;
  bool holds_;
  std::string line_;
  std::deque<std::string> last_;
};

}  // namespace millrace
