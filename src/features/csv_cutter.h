#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// How lines of CSV are cut (CsvDesc).
struct CsvDialect {
  char delimiter = ',';
  bool keeps_spaces = false;         ///< around values that are not in quotes
  bool trims_quoted = false;         ///< spaces around those that are
  bool keeps_tabs = false;           ///< next to quotes, where models before TextRule::kCanonical have them
  std::vector<std::string> missing;  ///< values that mean that there is none
};

/// What is wrong with a line of CSV, and at which of its bytes, from 0.
struct CsvMistake {
  size_t at = 0;
  std::string expected;
  std::string found;
};

/// Cuts lines of CSV into values: between delimiters, or in quotes, where "" stands for one. A quote that stands in the
/// middle of a value is a part of it. A line break in quotes is refused, as lines end there.
///
/// One thread; allocates when a line with doubled quotes is the longest so far.
class CsvCutter {
 public:
  explicit CsvCutter(CsvDialect dialect) : dialect_(std::move(dialect)) {}

  /// The value at position i of a line goes to texts[places[i]], missing ones as an empty text, and the byte where it
  /// stands to begins[places[i]]; where places[i] is negative, it is left out. Positions behind those of `places` are
  /// counted alone. `line` has no '\n', but 64 bytes behind it may be read. Texts are valid until the next call.
  /// False: the quotes of the line are wrong, as error() says.
  bool Cut(std::string_view line, std::span<const int> places, std::span<std::string_view> texts,
           std::span<size_t> begins);
  /// Values of the last line.
  size_t count() const { return count_; }
  /// The byte, from 0, at which the value behind those of `places` stands, if there is one.
  size_t first_beyond() const { return first_beyond_; }
  const CsvMistake& error() const { return error_; }

 private:
  /// Takes a value in quotes from `at`, which points to the first quote, and returns the delimiter behind it, or the
  /// end; null for wrong quotes.
  const char* TakeQuoted(const char* at, const char* line, const char* end, std::string_view* text);
  bool MeansMissing(std::string_view text) const;
  /// Whether a byte next to quotes is no part of a value.
  bool IsAround(char c) const {
    if (dialect_.keeps_spaces) return false;
    return c == ' ' || (c == '\t' && !dialect_.keeps_tabs && dialect_.delimiter != '\t');
  }

  CsvDialect dialect_;
  std::string unquoted_;  ///< values of the line that had doubled quotes, padded
  size_t count_ = 0;
  size_t first_beyond_ = 0;
  CsvMistake error_;
};

/// The values of one line, as CsvCutter cuts it, all of them; for headers. False: its quotes are wrong.
bool CutCsvHeader(std::string_view line, const CsvDialect& dialect, std::vector<std::string>* names, CsvMistake* error);

}  // namespace millrace
