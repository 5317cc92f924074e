#include "runs/run_table_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/harmless_text.h"

namespace millrace {
namespace {

/// The most of a run's name where the table is too wide.
constexpr size_t kNameColumns = 48;
/// A field this wide is shown behind all else.
constexpr size_t kWideField = 24;
/// Names of columns that are left out; more are counted.
constexpr size_t kNamedLeftOut = 12;

bool BeginsCharacter(char c) { return (c & 0xC0) != 0x80; }

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

/// The start and the end of a longer name: names of trainings differ at the end as well.
std::string ShortName(const std::string& name) {
  if (WidthOf(name) <= kNameColumns) return name;
  constexpr size_t kEnd = kNameColumns / 3;
  constexpr size_t kBegin = kNameColumns - kEnd - 3;
  std::string begin;
  std::string end;
  size_t at = 0;
  const size_t width = WidthOf(name);
  for (const char c : name) {
    at += BeginsCharacter(c) ? 1 : 0;
    if (at <= kBegin) begin += c;
    if (at > width - kEnd) end += c;
  }
  return begin + "..." + end;
}

/// The texts of a table, line by line, the heads first; the first column has the names.
using Lines = std::vector<std::vector<std::string>>;

Lines LinesOf(const RunTable& table) {
  Lines lines = {{"run"}};
  for (const std::string& head : table.heads) lines[0].push_back(Harmless(head) + " ");
  for (const RunRow& row : table.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    line.push_back((row.is_member ? "  " : "") + Harmless(row.name));
    // The numbers of a column stand below each other, marked or not.
    for (const RunCell& cell : row.cells) line.push_back(Harmless(cell.text) + (cell.is_best ? "*" : " "));
  }
  return lines;
}

std::vector<size_t> WidthsOf(const Lines& lines) {
  std::vector<size_t> widths(lines[0].size(), 0);
  for (size_t column = 0; column < widths.size(); ++column) {
    for (const auto& line : lines) widths[column] = std::max(widths[column], WidthOf(line[column]));
  }
  return widths;
}

/// The columns of the lines, the most telling first.
std::vector<size_t> ByWorth(const RunTable& table, const std::vector<size_t>& widths) {
  const size_t values = table.fields + 1;  // the first column of numbers: steps, examples/s, seconds, then metrics
  constexpr size_t kEffort = 3;
  const auto rank = [&](size_t column) {
    const std::string& head = table.heads[column - 1];
    if (head == table.order_by) return 0;
    if (column < values) return widths[column] <= kWideField ? 2 : 7;
    if (column < values + kEffort) return column == values + kEffort - 1 ? 4 : 6;
    if (column == values + kEffort) return 1;
    return head.ends_with(" best") ? 5 : 3;
  };
  std::vector<size_t> columns;
  for (size_t column = 1; column < widths.size(); ++column) columns.push_back(column);
  std::stable_sort(columns.begin(), columns.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return columns;
}

/// Which columns fit, by their number; the names always do.
std::vector<bool> Shown(const RunTable& table, const std::vector<size_t>& widths, size_t most) {
  constexpr size_t kGap = 2;
  std::vector<bool> shown(widths.size(), false);
  shown[0] = true;
  size_t width = widths[0];
  for (const size_t column : ByWorth(table, widths)) {
    if (width + kGap + widths[column] > most + 1) continue;  // the space behind the last number is not written
    shown[column] = true;
    width += kGap + widths[column];
  }
  return shown;
}

/// "not shown: a, b, c", in lines that are as wide as the table may be.
std::string LeftOut(const RunTable& table, const std::vector<bool>& shown, size_t columns) {
  std::vector<std::string> names;
  for (size_t i = 0; i < table.heads.size(); ++i) {
    if (!shown[i + 1]) names.push_back(Harmless(i < table.fields ? table.paths[i] : table.heads[i]));
  }
  if (names.empty()) return "";
  if (names.size() > kNamedLeftOut + 1) {
    const size_t more = names.size() - kNamedLeftOut;
    names.resize(kNamedLeftOut);
    names.push_back("and " + std::to_string(more) + " others");
  }
  std::string text = "  too wide for " + std::to_string(columns) + " columns, and in the page alone (--html):";
  size_t width = WidthOf(text);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i] + (i + 1 < names.size() ? "," : "");
    const bool fits = width + 1 + WidthOf(name) <= columns;
    text += (fits ? " " : "\n    ") + name;
    width = (fits ? width + 1 : 4) + WidthOf(name);
  }
  return text + "\n";
}

}  // namespace

std::string RunTableText(const RunTable& table, size_t columns) {
  Lines lines = LinesOf(table);
  std::vector<size_t> widths = WidthsOf(lines);
  std::vector<bool> shown = Shown(table, widths, columns);
  if (std::find(shown.begin(), shown.end(), false) != shown.end()) {
    for (auto& line : lines) line[0] = ShortName(line[0]);
    widths = WidthsOf(lines);
    shown = Shown(table, widths, columns);
  }
  std::string text;
  for (const auto& line : lines) {
    std::string written = line[0] + std::string(widths[0] - WidthOf(line[0]), ' ');
    for (size_t column = 1; column < widths.size(); ++column) {
      if (shown[column]) written += "  " + std::string(widths[column] - WidthOf(line[column]), ' ') + line[column];
    }
    written.resize(written.find_last_not_of(' ') + 1);
    text += written + "\n";
  }
  for (size_t i = 0; i < table.fields; ++i) {
    if (shown[i + 1] && table.heads[i] != table.paths[i]) {
      text += "  " + Harmless(table.heads[i]) + " is " + Harmless(table.paths[i]) + "\n";
    }
  }
  text += LeftOut(table, shown, columns);
  for (const std::string& note : table.notes) text += "  " + note + "\n";
  return text;
}

}  // namespace millrace
