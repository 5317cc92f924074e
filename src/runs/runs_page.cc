#include "runs/runs_page.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "runs/curve_chart.h"

namespace millrace {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1c1f23; --pale: #6b7280; --rule: #d9dde3; --page: #ffffff; --best: #e8f3ea; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --pale: #9aa3ad; --rule: #363c44; --page: #16191d; --best: #1f3326; }
}
body { margin: 2em auto; max-width: 1360px; padding: 0 1.5em; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4em; } h2 { font-size: 1.05em; margin: 0 0 .3em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .28em .7em; text-align: right; border-bottom: 1px solid var(--rule); }
th { color: var(--pale); font-weight: 500; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
td.field { color: var(--pale); }
tr.member td { font-size: .9em; color: var(--pale); } tr.member td:first-child { padding-left: 2em; }
td.best { background: var(--best); font-weight: 650; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .5em; }
.note { color: var(--pale); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(500px, 1fr)); gap: 1.6em; margin-top: 2em; }
figure { margin: 0; }
svg { width: 100%; height: auto; }
svg text { fill: var(--pale); font-size: 11px; }
svg text.up { text-anchor: end; dominant-baseline: middle; } svg text.across { text-anchor: middle; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg path { fill: none; stroke: currentColor; stroke-linecap: round; stroke-linejoin: round; }
svg circle { fill: currentColor; }
svg .training path { stroke-width: 1.1; opacity: .7; } svg .evaluation path { stroke-width: 2; }
svg g:hover path { stroke-width: 3.5; opacity: 1; }
)";

/// Told apart by people who see few colors, too; beyond them colors come again.
constexpr std::array<std::string_view, 10> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                                      "#56b4e9", "#7b4fb5", "#8c6d31", "#c1272d", "#5b8c2a"};

/// The colors of runs: one of each row of the first rank.
std::vector<std::string> ColorsOf(const RunTable& table, size_t runs) {
  std::vector<std::string> colors(runs, std::string(kColors[0]));
  size_t next = 0;
  for (const RunRow& row : table.rows) {
    if (row.is_member) continue;
    for (const size_t run : row.runs) colors[run] = kColors[next % kColors.size()];
    ++next;
  }
  return colors;
}

std::string WithPlusMinus(std::string text) {
  const size_t place = text.find(" +- ");
  if (place != std::string::npos) text.replace(place, 4, " &plusmn; ");
  return text;
}

std::string TableOf(const RunTable& table, const std::vector<std::string>& colors) {
  std::string html = "<div class=\"wide\"><table>\n<tr><th>run</th>";
  for (const std::string& head : table.heads) html += "<th>" + EscapedForHtml(head) + "</th>";
  html += "</tr>\n";
  for (const RunRow& row : table.rows) {
    html += row.is_member ? "<tr class=\"member\">" : "<tr>";
    html += "<td><span class=\"swatch\" style=\"background:" + colors[row.runs[0]] + "\"></span>" +
            EscapedForHtml(row.name) + "</td>";
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const std::string kind = row.cells[i].is_best ? " class=\"best\"" : i < table.fields ? " class=\"field\"" : "";
      html += "<td" + kind + ">" + WithPlusMinus(EscapedForHtml(row.cells[i].text)) + "</td>";
    }
    html += "</tr>\n";
  }
  html += "</table></div>\n";
  const auto note = [&html](const std::string& line) {
    html += "<div class=\"note\">" + EscapedForHtml(line) + "</div>\n";
  };
  for (size_t i = 0; i < table.fields; ++i) {
    if (table.heads[i] != table.paths[i]) note(table.heads[i] + " is " + table.paths[i]);
  }
  for (const std::string& line : table.notes) note(line);
  return html;
}

/// Names of curves: those of evaluations first, then what is known of training alone.
std::vector<std::string> CurveNames(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const auto curves : {&RunRecord::evaluations, &RunRecord::training}) {
    for (const RunRecord& run : runs) {
      for (const Curve& curve : run.*curves) {
        if (std::find(names.begin(), names.end(), curve.name) == names.end()) names.push_back(curve.name);
      }
    }
  }
  return names;
}

std::string Charts(const std::vector<RunRecord>& runs, const std::vector<std::string>& colors) {
  std::string html = "<div class=\"charts\">\n";
  for (const std::string& name : CurveNames(runs)) {
    std::vector<ChartLine> lines;
    for (size_t i = 0; i < runs.size(); ++i) {
      for (const auto curves : {&RunRecord::training, &RunRecord::evaluations}) {
        const bool is_evaluation = curves == &RunRecord::evaluations;
        for (const Curve& curve : runs[i].*curves) {
          if (curve.name != name) continue;
          lines.push_back({runs[i].name + (is_evaluation ? ", evaluation" : ", training"), colors[i], is_evaluation,
                           &curve.points});
        }
      }
    }
    const std::string chart = CurveChart(lines);
    if (!chart.empty()) html += "<figure><h2>" + EscapedForHtml(name) + "</h2>\n" + chart + "</figure>\n";
  }
  return html + "</div>\n";
}

}  // namespace

std::string RunsPage(const std::vector<RunRecord>& runs, const RunTable& table) {
  const std::vector<std::string> colors = ColorsOf(table, runs.size());
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Runs</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>" +
      std::string(kStyle) + "</style></head>\n<body><h1>" + std::to_string(runs.size()) +
      (runs.size() == 1 ? " run" : " runs") + "</h1>\n" + TableOf(table, colors);
  for (const RunRecord& run : runs) {
    for (const std::string& note : run.notes) html += "<div class=\"note\">" + EscapedForHtml(note) + "</div>\n";
  }
  html += Charts(runs, colors);
  html +=
      "<p class=\"note\">Thick lines with points are evaluations, thin ones are of training. A line says whose it "
      "is where the pointer rests on it. Of each column the best is marked; runs whose jobs differ in the seed alone "
      "have one color, and stand below their mean with its standard error.</p>\n";
  return html + "</body></html>\n";
}

}  // namespace millrace
