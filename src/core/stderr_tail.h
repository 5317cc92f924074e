#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace millrace {

/// Processes a command's stderr: forwards each line to our stderr with the prefix "LABEL: " and keeps the last ones.
///
/// One thread. Memory is bounded: long lines are truncated.
class StderrTail {
 public:
  /// With `holds`, only PassOn forwards lines.
  StderrTail(std::string label, bool holds) : label_(std::move(label)), holds_(holds) {}

  void Append(std::string_view bytes);
  /// Ends a last line without '\n'.
  void Finish();
  /// Forwards the kept lines if they were held back.
  void PassOn();
  /// A heading and "\n    LINE" for each kept line; empty without output.
  std::string ForMessage() const;
  /// The kept lines.
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
