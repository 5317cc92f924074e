#include "features/csv_cutter.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "features/csv_by_byte.h"

namespace millrace {
namespace {

using testing::CompareCuts;

TEST(CsvCutterTest, LinesOfTheBytesThatMatterAreCutAsByteByByte) {
  constexpr std::string_view kBytes = "\"\", ,\t;a1\"";
  Rng rng(20261126);
  for (int i = 0; i < 200000; ++i) {
    CsvDialect dialect;
    dialect.delimiter = ",;\t"[rng.Below(3)];
    dialect.keeps_spaces = rng.Below(2) == 0;
    dialect.keeps_tabs = rng.Below(2) == 0;
    if (rng.Below(2) == 0) dialect.missing = {"a", "1a"};
    std::string line;
    for (uint64_t n = rng.Below(20); n > 0; --n) line += kBytes[rng.Below(kBytes.size())];
    ASSERT_EQ(CompareCuts(line, dialect), "") << "line \"" << line << "\" delimiter '" << dialect.delimiter << "'";
  }
}

TEST(CsvCutterTest, LongValuesWithDoubledQuotesStayWhereTheyAre) {
  std::string line;
  for (int i = 0; i < 40; ++i) line += "\"" + std::string(static_cast<size_t>(i), 'x') + "\"\"\",";
  EXPECT_EQ(CompareCuts(line, {}), "");
}

TEST(CsvCutterTest, TabsNextToQuotesAreNoPartOfAValue) {
  std::vector<std::string> values;
  CsvMistake mistake;
  ASSERT_TRUE(CutCsvHeader("\t\"a\" \t, \t\"b\"", {}, &values, &mistake));
  EXPECT_EQ(values, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(CutCsvHeader("\"a\" \tb", {}, &values, &mistake));
  ASSERT_TRUE(CutCsvHeader("\t\"a\"", {.keeps_tabs = true, .missing = {}}, &values, &mistake));
  EXPECT_EQ(values, (std::vector<std::string>{"\"a\""}));
}

TEST(CsvCutterTest, HeadersAreCutAsLinesAre) {
  std::vector<std::string> names;
  CsvMistake mistake;
  ASSERT_TRUE(CutCsvHeader("a, \"b, \"\"c\"\"\",,d", {.missing = {"a"}}, &names, &mistake));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b, \"c\"", "", "d"}));
  EXPECT_FALSE(CutCsvHeader("a,\"b", {}, &names, &mistake));
  EXPECT_EQ(mistake.at, 2U);
}

}  // namespace
}  // namespace millrace
