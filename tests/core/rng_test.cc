#include "core/rng.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace {
namespace {

TEST(RngTest, TheSequenceOfASeedNeverChanges) {
  // From an independent implementation of SplitMix64 and xoshiro256++. Shuffles, and so every resumed run, rest on
  // them.
  Rng one(1);
  EXPECT_EQ(one.Next(), 14971601782005023387U);
  EXPECT_EQ(one.Next(), 13781649495232077965U);
  EXPECT_EQ(one.Next(), 1847458086238483744U);
  Rng other(42);
  EXPECT_EQ(other.Next(), 0xd0764d4f4476689fU);
  EXPECT_EQ(other.Next(), 0x519e4174576f3791U);
  EXPECT_EQ(other.Next(), 0xfbe07cfb0c24ed8cU);
}

TEST(RngTest, BelowStaysBelowAndReachesEveryNumberEquallyOften) {
  Rng rng(3);
  for (const uint64_t bound : {1U, 2U, 3U, 7U, 10U}) {
    constexpr int kDraws = 100000;
    std::vector<int> counts(bound);
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t drawn = rng.Below(bound);
      ASSERT_LT(drawn, bound);
      ++counts[drawn];
    }
    const double expected = kDraws / static_cast<double>(bound);
    double chi_squared = 0;
    for (const int count : counts) chi_squared += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_squared, 30) << "bound " << bound;  // 9 degrees of freedom at most: p < 0.001
  }
}

TEST(RngTest, BelowIsExactForBoundsThatThrowDrawsAway) {
  // Of bounds just above 2^63 nearly half of all draws are thrown away; a biased method would favour some halves.
  Rng rng(4);
  const uint64_t bound = (uint64_t{1} << 63) + 1;
  int low = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t drawn = rng.Below(bound);
    ASSERT_LT(drawn, bound);
    low += drawn < bound / 2;
  }
  EXPECT_NEAR(low, kDraws / 2, 400);
}

TEST(RngTest, UniformIsInTheHalfOpenUnitInterval) {
  Rng rng(5);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = rng.Uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

}  // namespace
}  // namespace millrace
