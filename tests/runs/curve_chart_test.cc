#include "runs/curve_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace millrace {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

std::string Drawn(const std::vector<CurvePoint>& points, bool is_evaluation = false) {
  return CurveChart({{"a", "red", is_evaluation, &points}});
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(CurveChart, AxesHaveRoundNumbers) {
  EXPECT_THAT(AxisTicks(0, 938, 6), ElementsAre(0, 200, 400, 600, 800));
  EXPECT_THAT(AxisTicks(0.681, 0.743, 6),
              ElementsAre(DoubleNear(0.70, 1e-12), DoubleNear(0.72, 1e-12), DoubleNear(0.74, 1e-12)));
  EXPECT_THAT(AxisTicks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
}

TEST(CurveChart, ALineGoesFromCornerToCorner) {
  EXPECT_THAT(Drawn({{0, 0}, {10, 1}}), HasSubstr("d=\"M72.0 266.0L626.0 12.0\""));
}

TEST(CurveChart, AValueThatIsNoneIsAGap) {
  const std::string chart = Drawn({{0, 0}, {1, 1}, {2, kGap}, {3, 1}, {4, std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(Count(chart, "M"), 2U);
  EXPECT_THAT(chart, Not(HasSubstr("nan")));
  EXPECT_THAT(chart, Not(HasSubstr("inf")));
  EXPECT_EQ(Drawn({{1, kGap}}), "");
  EXPECT_EQ(CurveChart({}), "");
}

TEST(CurveChart, OnePointAndOneValueHaveAPlace) {
  const std::string chart = Drawn({{5, 0.25}}, true);
  EXPECT_EQ(Count(chart, "<circle"), 1U);
  EXPECT_THAT(chart, Not(HasSubstr("nan")));
  EXPECT_THAT(Drawn({{0, 0}, {9, 0}}), HasSubstr("139.0L626.0 139.0"));
}

TEST(CurveChart, ALongCurveKeepsItsPeaks) {
  std::vector<CurvePoint> points;
  for (int64_t i = 0; i < 100000; ++i) points.push_back({i, i == 54321 ? 9.0 : 0.0});
  const std::string chart = Drawn(points);
  EXPECT_LT(Count(chart, "L"), 2000U);
  EXPECT_THAT(chart, HasSubstr(" 12.0")) << "the peak is at the top";
}

}  // namespace
}  // namespace millrace
