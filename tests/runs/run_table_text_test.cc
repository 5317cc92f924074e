#include "runs/run_table_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A table of two runs with so many fields, each with values of a width.
RunTable TableOf(const std::vector<size_t>& fields, const std::vector<std::string>& metrics) {
  RunTable table;
  table.fields = fields.size();
  for (size_t i = 0; i < fields.size(); ++i) {
    table.paths.push_back("model.layer[x].f" + std::to_string(i));
    table.heads.push_back("f" + std::to_string(i));
  }
  for (const char* head : {"steps", "examples/s", "seconds"}) table.heads.emplace_back(head);
  table.heads.insert(table.heads.end(), metrics.begin(), metrics.end());
  for (const char* name : {"a", "b"}) {
    RunRow& row = table.rows.emplace_back();
    row.name = name;
    for (const size_t width : fields) row.cells.push_back({std::string(width, 'v')});
    for (size_t i = 0; i < 3 + metrics.size(); ++i) row.cells.push_back({"0.12345"});
  }
  return table;
}

size_t WidestLine(const std::string& text) {
  std::istringstream lines(text);
  size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(RunTableText, RunsOfQuiteDifferentJobsFitATerminal) {
  std::vector<size_t> widths(30, 40);
  widths[7] = 5;
  const std::string text = RunTableText(TableOf(widths, {"auc", "auc best", "logloss", "loss"}));
  EXPECT_LE(WidestLine(text), 120U) << text;
  EXPECT_THAT(text, AllOf(StartsWith("run"), HasSubstr("  f7 "), HasSubstr(" auc "), HasSubstr(" logloss"),
                          HasSubstr("  f7 is model.layer[x].f7\n"), Not(HasSubstr("f29 is"))));
  EXPECT_THAT(text, HasSubstr("in the page alone (--html): model.layer[x].f"));
  EXPECT_THAT(text, HasSubstr(" others\n"));
}

TEST(RunTableText, TheMetricThatRunsAreOrderedByIsShownFirst) {
  std::vector<std::string> metrics;
  for (int i = 0; i < 20; ++i) metrics.push_back("task" + std::to_string(i) + "/auc");
  RunTable table = TableOf({}, metrics);
  table.order_by = "task17/auc";
  const std::string text = RunTableText(table);
  EXPECT_LE(WidestLine(text), 120U);
  EXPECT_THAT(text.substr(0, text.find('\n')),
              AllOf(HasSubstr("task0/auc"), HasSubstr("task17/auc"), Not(HasSubstr("task16/"))));
}

TEST(RunTableText, ANameThatLeavesNoRoomIsCutInTheMiddle) {
  RunTable table = TableOf({10}, {"auc"});
  table.rows[0].name = "begin" + std::string(100, 'x') + "end-1";
  table.rows[1].name = "begin" + std::string(100, 'x') + "end-2";
  const std::string text = RunTableText(table);
  EXPECT_LE(WidestLine(text), 120U);
  EXPECT_THAT(text, AllOf(HasSubstr("\nbeginx"), HasSubstr("xend-1 "), HasSubstr("xend-2 "), HasSubstr("...")));
}

}  // namespace
}  // namespace millrace
