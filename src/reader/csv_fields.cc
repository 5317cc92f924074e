#include "reader/csv_fields.h"

#include <algorithm>

#include "core/utf8.h"
#include "reader/field_value.h"

namespace millrace {

bool CsvFields::Next(std::string_view* field) {
  if (at_end_) return false;
  const size_t comma = rest_.find(',');
  *field = rest_.substr(0, comma);
  at_end_ = comma == std::string_view::npos;
  if (!at_end_) rest_.remove_prefix(comma + 1);
  ++count_;
  return true;
}

bool CsvFields::NextPlainFloat(float* value, DigitGuess* guess) {
  const char* const end = rest_.data() + rest_.size();
  const auto ends = [end](const char* at) { return at == end || *at == ','; };
  if (at_end_ || rest_.empty()) return false;
  const char* const at = ReadPlainFloat(rest_.data(), value, guess, ends);
  if (at == nullptr) return false;
  at_end_ = at == end;
  rest_.remove_prefix(static_cast<size_t>(at - rest_.data()) + (at_end_ ? 0 : 1));
  ++count_;
  return true;
}

size_t CountCsvColumns(std::string_view line) {
  return static_cast<size_t>(std::count(line.begin(), line.end(), ',')) + 1;
}

std::string_view CsvName(std::string_view field) {
  const auto is_around = [](char c) { return c == ' ' || c == '\t' || c == '"'; };
  while (!field.empty() && is_around(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_around(field.back())) field.remove_suffix(1);
  return field;
}

bool IsCsvName(std::string_view field) {
  field = CsvName(field);
  const std::string_view first = field.substr(0, field.find(' '));
  float value = 0;
  return !first.empty() && !ParseField(first, DType::kFloat32, &value, 0);
}

bool IsCsvHeader(std::string_view line) {
  CsvFields fields(line);
  std::string_view field;
  size_t names = 0;
  while (fields.Next(&field)) names += IsCsvName(field) ? 1 : 0;
  return 2 * names > fields.count();
}

std::string_view CsvLine(std::string_view line, bool is_first) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return is_first ? WithoutByteOrderMark(line) : line;
}

}  // namespace millrace
