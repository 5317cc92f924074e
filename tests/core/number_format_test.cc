#include "core/number_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "core/float_text.h"
#include "core/shortest_number.h"

namespace millrace {
namespace {

std::string Printf(const char* format, int digits, double value) {
  char text[400];
  std::snprintf(text, sizeof(text), format, digits, value);
  return text;
}

TEST(NumberFormat, WritesWhatPrintfWritesInTheCLocale) {
  for (const double value : {0.0, -0.0, 0.5, 1.0 / 3, -2.675, 1e-7, 123456.5, 1e15, 1.7e308, 5e-324,
                             std::numeric_limits<double>::infinity()}) {
    for (const int digits : {0, 1, 2, 6, 9}) {
      EXPECT_EQ(FixedNumber(value, digits), Printf("%.*f", digits, value));
      EXPECT_EQ(GeneralNumber(value, digits), Printf("%.*g", digits, value));
    }
  }
  EXPECT_EQ(FixedNumber(-std::nan(""), 2), "nan");
}

// FixedNumber(x, 6) showed the max_norm that is refused as -0.000000.
TEST(ShortestNumber, ShowsWhatIsRefused) {
  EXPECT_EQ(ShortestNumber(-1e-9), "-1e-09");
  EXPECT_EQ(ShortestNumber(1.0000001F), "1.0000001");
  EXPECT_EQ(ShortestNumber(0.1), "0.1");
  EXPECT_EQ(ShortestNumber(0.1F), "0.1");
  EXPECT_EQ(ShortestNumber(-std::nan("")), "nan");
}

TEST(ParseDouble, ReadsAWholeTextAndNothingElse) {
  double value = 7;
  for (const char* text : {"", " ", "0,25", "1 ", "1.5x", "+", "0x", "nane"}) {
    EXPECT_EQ(ParseDouble(text, &value), FloatText::kNoNumber) << text;
  }
  EXPECT_EQ(value, 7);
  const std::pair<const char*, double> numbers[] = {
      {"0.25", 0.25}, {"-1e-300", -1e-300}, {"+.5", 0.5}, {"0x1p-2", 0.25}, {"123456789.125", 123456789.125}};
  for (const auto& [text, expected] : numbers) {
    EXPECT_EQ(ParseDouble(text, &value), FloatText::kFinite) << text;
    EXPECT_EQ(value, expected) << text;
  }
  EXPECT_EQ(ParseDouble("-1e400", &value), FloatText::kOverflow);
  EXPECT_EQ(value, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(ParseDouble("inf", &value), FloatText::kNonFinite);
}

}  // namespace
}  // namespace millrace
