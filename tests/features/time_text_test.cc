#include "features/time_text.h"

#include <gtest/gtest.h>

#include <string>

#include "core/numbers.h"

namespace millrace {
namespace {

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
