#include "inspect/cardinality.h"

#include <gtest/gtest.h>

#include "core/rng.h"

namespace millrace {
namespace {

TEST(HyperLogLog, IsWithinThreePercent) {
  for (int n : {0, 1, 100, 20000, 60000, 1000000}) {
    HyperLogLog sketch;
    for (int i = 0; i < n; ++i) {
      sketch.Add(static_cast<uint64_t>(i));
      if (i % 3 == 0) sketch.Add(static_cast<uint64_t>(i));
    }
    EXPECT_NEAR(sketch.Estimate(), n, 0.03 * n) << n;
  }
}

TEST(IdCounts, IsExactBelowTheBound) {
  IdCounts counts(10);
  for (uint64_t id = 0; id < 10; ++id) {
    for (uint64_t i = 0; i <= id; ++i) counts.Add(id, i == 0);
  }
  EXPECT_TRUE(counts.exact());
  EXPECT_EQ(counts.cardinality(), 10);
  const auto top = counts.Top(2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, 9u);
  EXPECT_EQ(top[0].count, 10);
  EXPECT_EQ(top[0].clicks, 1);
  EXPECT_EQ(top[1].id, 8u);
}

TEST(IdCounts, KeepsFrequentIdsAboveTheBound) {
  IdCounts counts(100);
  Rng random(1);
  int64_t sevens = 0;
  for (int i = 0; i < 100000; ++i) {
    const bool seven = random.Below(10) == 0;
    sevens += seven ? 1 : 0;
    counts.Add(seven ? 7 : 1000 + random.Below(50000), false);
  }
  EXPECT_FALSE(counts.exact());
  EXPECT_NEAR(counts.cardinality(), 50000 * (1 - 0.165) + 1, 2500);  // of 50,000 ids, exp(-1.8) are never drawn
  const auto top = counts.Top(1);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].id, 7u);
  EXPECT_LE(top[0].count, sevens);
  EXPECT_GE(top[0].count + counts.largest_error(), sevens);
}

TEST(IdCounts, EqualCountsComeInTheOrderOfIds) {
  IdCounts counts(10);
  for (uint64_t id : {5, 3, 9}) counts.Add(id, false);
  const auto top = counts.Top(5);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].id, 3u);
  EXPECT_EQ(top[2].id, 9u);
}

}  // namespace
}  // namespace millrace
