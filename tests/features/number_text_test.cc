#include "features/number_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/rng.h"
#include "features/time_text.h"

namespace millrace {
namespace {

bool Read(std::string text, double* value, char behind = '7') {
  const size_t size = text.size();
  text.append(kNumberPadding, behind);
  return ReadNumber(std::string_view(text).substr(0, size), value);
}

TEST(NumberTextTest, DecimalsAreRoundedAsTheStandardLibraryDoes) {
  Rng rng(7);
  for (int i = 0; i < 200000; ++i) {
    std::string text = rng.Below(3) == 0 ? "-" : "";
    for (uint64_t n = 1 + rng.Below(9); n > 0; --n) text += static_cast<char>('0' + rng.Below(10));
    if (rng.Below(2) == 0) {
      text += '.';
      for (uint64_t n = rng.Below(9); n > 0; --n) text += static_cast<char>('0' + rng.Below(10));
    }
    if (rng.Below(5) == 0) text += "e-" + std::to_string(rng.Below(30));
    double value = 0;
    ASSERT_TRUE(Read(text, &value)) << text;
    ASSERT_EQ(value, std::strtod(text.c_str(), nullptr)) << text;
  }
}

TEST(NumberTextTest, WhatIsNoNumberIsRefusedWhateverStandsBehindIt) {
  double value = 0;
  for (const char* text :
       {"", "-", "+", ".", "1x", "x1", "1,", "--1", "+-1", "1e", "0x10", "1 ", " 1", "1.2.3", "1e999"}) {
    for (const char behind : {'7', '.', ',', '\0'}) EXPECT_FALSE(Read(text, &value, behind)) << text;
  }
  EXPECT_TRUE(Read("+2", &value));
  EXPECT_EQ(value, 2);
  EXPECT_TRUE(Read(".5", &value));
  EXPECT_EQ(value, 0.5);
}

int64_t PartOf(std::string text, const TimePart& how) {
  const size_t size = text.size();
  text.append(kNumberPadding, '7');
  int64_t value = -1000;
  return ReadTimePart(std::string_view(text).substr(0, size), how, &value) ? value : -999;
}

TEST(TimeTextTest, PartsOfTimes) {
  using D = DatePartStep;
  const auto iso = [](D::Part part) { return TimePart{part, D::ISO_8601, 0}; };
  const std::string time = "2024-12-31T23:59:60.25+01:00";
  EXPECT_EQ(PartOf(time, iso(D::HOUR)), 23);
  EXPECT_EQ(PartOf(time, iso(D::MINUTE)), 59);
  EXPECT_EQ(PartOf(time, iso(D::WEEKDAY)), 2);
  EXPECT_EQ(PartOf(time, iso(D::DAY)), 31);
  EXPECT_EQ(PartOf(time, iso(D::MONTH)), 12);
  EXPECT_EQ(PartOf(time, iso(D::YEAR)), 2024);
  EXPECT_EQ(PartOf(time, iso(D::DAY_OF_YEAR)), 366);
  EXPECT_EQ(PartOf(time, iso(D::HOUR_OF_WEEK)), 47);
  EXPECT_EQ(PartOf("1969-12-31", iso(D::DAYS)), -1);
  EXPECT_EQ(PartOf("-1", {D::YEAR, D::EPOCH_SECONDS, 0}), 1969);
  EXPECT_EQ(PartOf("964982703", {D::DAYS, D::EPOCH_SECONDS, 0}), 11168);
  EXPECT_EQ(PartOf("964982703500", {D::HOUR, D::EPOCH_MILLISECONDS, 0}), 18);
  EXPECT_EQ(PartOf("964982703", {D::HOUR, D::EPOCH_SECONDS, 330}), 0);
}

TEST(TimeTextTest, WhatIsNoTimeIsRefused) {
  using D = DatePartStep;
  for (const char* text : {"", "2024", "2024-13-01", "2023-02-29", "2024-1-1", "2024-01-01 24:00", "2024-01-01T10",
                           "2024-01-01 10:60", "2024-01-01 10:00:00.", "2024-01-01 10:00 x", "2024-01-01 10:00+1"}) {
    EXPECT_EQ(PartOf(text, {D::HOUR, D::ISO_8601, 0}), -999) << text;
  }
  for (const char* text : {"", "x", "nan", "inf", "1e20"}) {
    EXPECT_EQ(PartOf(text, {D::HOUR, D::EPOCH_SECONDS, 0}), -999) << text;
  }
}

}  // namespace
}  // namespace millrace
