#include "features/csv_by_byte.h"

#include <algorithm>

namespace millrace::testing {
namespace {

bool IsMissing(const std::string& value, const CsvDialect& dialect) {
  return std::find(dialect.missing.begin(), dialect.missing.end(), value) != dialect.missing.end();
}

}  // namespace

bool CutByByte(std::string_view line, const CsvDialect& dialect, std::vector<std::string>* values) {
  const auto is_around = [&](size_t at) {
    if (dialect.keeps_spaces || at == line.size()) return false;
    return line[at] == ' ' || (line[at] == '\t' && dialect.delimiter != '\t' && !dialect.keeps_tabs);
  };
  const auto is_delimiter = [&](size_t at) { return at == line.size() || line[at] == dialect.delimiter; };
  size_t at = 0;
  while (true) {
    std::string value;
    size_t first = at;
    while (is_around(first)) ++first;
    if (first < line.size() && line[first] == '"') {
      at = first + 1;
      while (true) {
        if (at == line.size()) return false;
        if (line[at] != '"') {
          value += line[at++];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          value += '"';
          at += 2;
        } else {
          break;
        }
      }
      ++at;
      while (is_around(at)) ++at;
      if (!is_delimiter(at)) return false;
    } else {
      while (!is_delimiter(at)) value += line[at++];
      const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
      while (!dialect.keeps_spaces && !value.empty() && is_space(value.front())) value.erase(0, 1);
      while (!dialect.keeps_spaces && !value.empty() && is_space(value.back())) value.pop_back();
    }
    values->push_back(IsMissing(value, dialect) ? "" : value);
    if (at == line.size()) return true;
    ++at;
  }
}

std::string CompareCuts(std::string_view line, const CsvDialect& dialect) {
  std::string padded(line);
  padded.append(64, dialect.delimiter);  // what stands behind a line must not count
  std::vector<std::string> expected;
  const bool is_cut = CutByByte(line, dialect, &expected);
  CsvCutter cutter(dialect);
  std::vector<int> places(expected.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(places.size() - 1 - i);
  std::vector<std::string_view> texts(places.size());
  std::vector<size_t> begins(places.size());
  if (cutter.Cut(std::string_view(padded).substr(0, line.size()), places, texts, begins) != is_cut) {
    return is_cut ? "refused: " + cutter.error().expected : "wrong quotes were taken";
  }
  if (!is_cut) return cutter.error().at <= line.size() ? "" : "a place beyond the line";
  if (cutter.count() != expected.size()) {
    return std::to_string(cutter.count()) + " values in place of " + std::to_string(expected.size());
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]);
    if (texts[place] != expected[i]) {
      return "value " + std::to_string(i) + " is \"" + std::string(texts[place]) + "\" in place of \"" + expected[i] +
             "\"";
    }
    if (begins[place] > line.size()) return "a place beyond the line";
  }
  return "";
}

}  // namespace millrace::testing
