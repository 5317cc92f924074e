#pragma once

#include <cstddef>
#include <string_view>

#include "core/digits.h"

namespace millrace {

/// Takes fields off the front of a CSV line and counts them. Fields are returned unchanged, split at commas.
class CsvFields {
 public:
  explicit CsvFields(std::string_view line) : rest_(line) {}

  bool Next(std::string_view* field);
  /// Takes the next field if it is a plain decimal, the usual case; otherwise takes nothing and returns false. 24 bytes
  /// after the line are readable.
  bool NextPlainFloat(float* value, DigitGuess* guess);
  /// Fields taken so far.
  size_t count() const { return count_; }

 private:
  std::string_view rest_;
  bool at_end_ = false;
  size_t count_ = 0;
};

size_t CountCsvColumns(std::string_view line);

/// The name in a header field, without surrounding decoration.
std::string_view CsvName(std::string_view field);

/// Whether a field is neither empty nor a number nor a list of numbers, quoted or not.
bool IsCsvName(std::string_view field);

/// Whether most columns of a first line are names. A single bad value does not make a row a header, because the row
/// would be lost silently; a few numbers do not make a header a row (scikit-learn writes
/// `150,4,setosa,versicolor,virginica`).
bool IsCsvHeader(std::string_view line);

/// A line without a carriage return, and a first line without a byte order mark.
std::string_view CsvLine(std::string_view line, bool is_first);

}  // namespace millrace
