#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace millrace {

/// A place in one of the texts that a configuration is made of. Lines and columns count from 1, columns in bytes.
struct SourceSpan {
  int source = -1;  ///< of Diagnostics; -1: the configuration as a whole
  int line = 0;     ///< 0: the text as a whole
  int column = 0;
  int length = 1;  ///< bytes that are underlined; never beyond the end of the line
};

/// Gathers everything that is wrong with a configuration, and shows it the way a compiler does:
///
///     job.prototxt:7:5: error: no field "bach_size" in DataFeedDesc; did you mean "batch_size"?
///       7 |     bach_size: 64
///         |     ^~~~~~~~~
///
/// Owns the texts that spans point into. One thread.
class Diagnostics {
 public:
  enum class Severity { kError, kWarning };

  /// Keeps a text to point into and returns its number. `origin` is how the user knows it: a file name, "--set #2".
  int AddSource(std::string origin, std::string text);

  /// The place of the bytes [begin, end) of a source; one that runs over several lines is cut at the first line's end.
  SourceSpan Span(int source, size_t begin, size_t end) const;

  /// `notes` stand on lines of their own below the message.
  void Error(SourceSpan where, std::string message, std::vector<std::string> notes = {}) {
    Add(Severity::kError, where, std::move(message), std::move(notes));
  }
  /// An error of the world outside: the configuration is sound, but an input that it names is not there.
  void InputError(SourceSpan where, std::string message) {
    const int before = errors_;
    Error(where, std::move(message));
    input_errors_ += errors_ - before;
  }
  void Warning(SourceSpan where, std::string message) { Add(Severity::kWarning, where, std::move(message)); }

  /// The same texts without entries, for mistakes that show later.
  Diagnostics SourcesAlone() const;

  int errors() const { return errors_; }
  bool empty() const { return entries_.empty(); }

  /// Writes the entries in the order of their places, up to a hundred, ending in "3 errors, 1 warning" when there is
  /// more than one. Nothing but printable UTF-8 is written, whatever the sources hold.
  std::string Render() const;
  /// Render() as kInvalidConfig when there are errors, as kNotFound when all of them are about inputs; else ok:
  /// warnings alone do not fail.
  Status ToStatus() const;

  struct Entry {
    Severity severity;
    SourceSpan where;
    std::string message;
    std::vector<std::string> notes = {};
  };
  const std::vector<Entry>& entries() const { return entries_; }
  const std::string& origin(int source) const { return sources_[static_cast<size_t>(source)].origin; }
  const std::string& text(int source) const { return sources_[static_cast<size_t>(source)].text; }

 private:
  struct Source {
    std::string origin;
    std::string text;
    std::vector<size_t> line_starts;
  };
  void Add(Severity severity, SourceSpan where, std::string message, std::vector<std::string> notes = {});
  static std::string_view Line(const Source& source, int line);
  void RenderEntry(const Entry& entry, std::string* out) const;

  std::deque<Source> sources_;  // never moves: parsers hold views of the texts
  std::vector<Entry> entries_;
  int errors_ = 0;
  int input_errors_ = 0;
};

}  // namespace millrace
