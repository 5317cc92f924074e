#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// How to split CSV lines (CsvDesc).
struct CsvDialect {
  char delimiter = ',';
  bool keeps_spaces = false;         ///< keep spaces around unquoted values
  bool trims_quoted = false;         ///< trim spaces around quoted values
  bool keeps_tabs = false;           ///< keep tabs next to quotes, for models before TextRule::kCanonical
  std::vector<std::string> missing;  ///< strings that mean a missing value
};

/// The error of a CSV line, and its byte offset.
struct CsvMistake {
  size_t at = 0;
  std::string expected;
  std::string found;
};

/// Splits CSV lines into values: between delimiters, or in quotes, where "" is a quote. A quote inside an unquoted
/// value is part of it. A line break in quotes is rejected, because lines end there.
///
/// One thread; allocates if a line with doubled quotes is the longest so far.
class CsvCutter {
 public:
  explicit CsvCutter(CsvDialect dialect) : dialect_(std::move(dialect)) {}

  /// Stores the value at position i of a line in texts[places[i]] (empty if missing) and its offset in
  /// begins[places[i]]; skips it if places[i] is negative. Positions beyond `places` are only counted. `line` has no
  /// '\n', but 64 bytes after it are readable. Strings are valid until the next call. Returns false if quotes are
  /// malformed; error() has the reason.
  bool Cut(std::string_view line, std::span<const int> places, std::span<std::string_view> texts,
           std::span<size_t> begins);
  /// Number of values in the last line.
  size_t count() const { return count_; }
  /// Offset of the first value beyond `places`, if there is one.
  size_t first_beyond() const { return first_beyond_; }
  const CsvMistake& error() const { return error_; }

 private:
  /// Reads a quoted value at `at`, its first quote, and returns the following delimiter or the end; null for malformed
  /// quotes.
  const char* TakeQuoted(const char* at, const char* line, const char* end, std::string_view* text);
  bool MeansMissing(std::string_view text) const;
  /// Whether a byte next to quotes is not part of a value.
  bool IsAround(char c) const {
    if (dialect_.keeps_spaces) return false;
    return c == ' ' || (c == '\t' && !dialect_.keeps_tabs && dialect_.delimiter != '\t');
  }

  CsvDialect dialect_;
  std::string unquoted_;  ///< values of the line with doubled quotes, padded
  size_t count_ = 0;
  size_t first_beyond_ = 0;
  CsvMistake error_;
};

/// Splits a whole line like CsvCutter; for headers. Returns false if quotes are malformed.
bool CutCsvHeader(std::string_view line, const CsvDialect& dialect, std::vector<std::string>* names, CsvMistake* error);

}  // namespace millrace
