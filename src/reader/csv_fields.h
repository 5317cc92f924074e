#pragma once

#include <cstddef>
#include <string_view>

#include "core/plain_decimal.h"

namespace millrace {

/// Takes the fields of a line of CSV off its front, and counts them. Fields stand between commas, as they are.
class CsvFields {
 public:
  explicit CsvFields(std::string_view line) : rest_(line) {}

  bool Next(std::string_view* field);
  /// Takes the next field when it is a plain decimal, as most are; false, and nothing is taken, when it is not. 24
  /// bytes behind the line may be read.
  bool NextPlainFloat(float* value, DigitGuess* guess);
  /// Fields taken so far.
  size_t count() const { return count_; }

 private:
  std::string_view rest_;
  bool at_end_ = false;
  size_t count_ = 0;
};

size_t CountCsvColumns(std::string_view line);

/// A field of a header without what may stand around it.
std::string_view CsvName(std::string_view field);

/// Whether a field is neither a number, nor a list of numbers, nor empty, quoted or not.
bool IsCsvName(std::string_view field);

/// Whether most columns of a first line are names. One bad value does not make a header of a row, which nobody would
/// miss; a few numbers are no row (scikit-learn writes `150,4,setosa,versicolor,virginica`).
bool IsCsvHeader(std::string_view line);

/// A line without what Windows ends it with, and a first one without what Windows begins a file with.
std::string_view CsvLine(std::string_view line, bool is_first);

}  // namespace millrace
