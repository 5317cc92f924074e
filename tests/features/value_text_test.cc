#include "features/value_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/numbers.h"

namespace millrace {
namespace {

std::string Canonical(std::string_view text) {
  std::string padded(text);
  padded.append(kNumberPadding, '7');
  std::string scratch;
  return std::string(CanonicalText(std::string_view(padded).substr(0, text.size()), &scratch));
}

TEST(CanonicalText, FloatsHaveTheTextsOfPython) {
  for (const std::string_view text : {"1e-5", "1E-05", "1.0E-5", "0.00001", "1e-05"})
    EXPECT_EQ(Canonical(text), "1e-05");
  for (const std::string_view text : {"1.2345678e+07", "1.2345678e7", "12345678.0"}) {
    EXPECT_EQ(Canonical(text), "12345678.0");
  }
  for (const std::string_view text : {"1e16", "1e+16", "1.0E16", "10000000000000000.0"}) {
    EXPECT_EQ(Canonical(text), "1e+16");
  }
  EXPECT_EQ(Canonical("0.10000000000000001"), "0.1");
  EXPECT_EQ(Canonical("-2.5e-7"), "-2.5e-07");
  EXPECT_EQ(Canonical("0e+00"), "0.0");
  EXPECT_EQ(Canonical("NaN"), "nan");
}

TEST(CanonicalText, OtherTextsStayAsTheyAre) {
  for (const std::string_view text : {"",
                                      "5",
                                      "5.0",
                                      "0.1",
                                      "-0.5",
                                      "0.0001",
                                      "1.10",
                                      "1.0.0",
                                      "007",
                                      "00.5",
                                      "12e5",
                                      "1e345678",
                                      "1e400",
                                      "1e",
                                      "1.",
                                      ".5",
                                      "3x",
                                      "68fd1e64",
                                      "0e12",
                                      "0e34",
                                      "1e02",
                                      "0.0e5",
                                      "12345678901234567.25",
                                      "1e-5 ",
                                      "2026-11-26",
                                      "2026-11",
                                      "0-1",
                                      "2026-13-26 10:00:00",
                                      "2026-11-26 10:00:60",
                                      "Nan",
                                      "Wien",
                                      "-",
                                      "--",
                                      "18446744073709551615"}) {
    EXPECT_EQ(Canonical(text), text);
  }
}

TEST(CanonicalText, TimesAreInstantsWithoutNeedlessDigits) {
  for (const std::string_view text : {"2026-11-26T10:00:00", "2026-11-26 10:00", "2026-11-26 10:00:00.000000"}) {
    EXPECT_EQ(Canonical(text), "2026-11-26 10:00:00");
  }
  EXPECT_EQ(Canonical("2026-11-26T11:00:00.500"), "2026-11-26 11:00:00.5");
  EXPECT_EQ(Canonical("2026-11-26T00:00:00.000"), "2026-11-26");
  for (const std::string_view text :
       {"2026-11-26T10:00:00Z", "2026-11-26 10:00:00+00:00", "2026-11-26T19:00:00.000+0900",
        "2026-11-26 19:00:00+09:00", "2026-11-26 06:30-03:30", "2026-11-26 10:00:00z"}) {
    EXPECT_EQ(Canonical(text), "2026-11-26 10:00:00Z");
  }
  EXPECT_EQ(Canonical("2026-11-26 09:00:00+09:00"), "2026-11-26 00:00:00Z");
  EXPECT_EQ(Canonical("2026-11-26 05:00:00.25+09:00"), "2026-11-25 20:00:00.25Z");
  EXPECT_EQ(Canonical("0000-01-01 00:00:00+09:00"), "0000-01-01 00:00:00+09:00");
}

}  // namespace
}  // namespace millrace
