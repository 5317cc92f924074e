#include "batch/consumed_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/rng.h"

namespace millrace {
namespace {

using Interval = ConsumedRanges::Interval;

// Ranges and what they must be: plain sets of positions.
struct Model {
  ConsumedRanges ranges;
  std::map<uint32_t, std::set<uint64_t>> positions;
};

// Adds `spans` spans that do not overlap, in any order.
Model RandomModel(Rng& rng, int spans) {
  Model model;
  for (int i = 0; i < spans; ++i) {
    BatchSpan span{static_cast<uint32_t>(rng.Below(3)), rng.Below(100), 0};
    span.end = span.begin + rng.Below(6);
    std::set<uint64_t>& positions = model.positions[span.source];
    bool is_free = true;
    for (uint64_t position = span.begin; position < span.end; ++position)
      is_free = is_free && !positions.contains(position);
    if (!is_free) continue;
    model.ranges.Add(span);
    for (uint64_t position = span.begin; position < span.end; ++position) positions.insert(position);
  }
  return model;
}

void ExpectEqual(const Model& model, const ConsumedRanges& ranges) {
  uint64_t total = 0;
  for (uint32_t source = 0; source < 3; ++source) {
    const auto found = model.positions.find(source);
    const std::set<uint64_t> positions = found == model.positions.end() ? std::set<uint64_t>() : found->second;
    total += positions.size();
    std::set<uint64_t> held;
    uint64_t last_end = 0;
    bool is_first = true;
    for (const Interval& interval : ranges.Intervals(source)) {
      ASSERT_LT(interval.begin, interval.end);
      ASSERT_TRUE(is_first || interval.begin > last_end) << "intervals that touch are one";
      is_first = false;
      last_end = interval.end;
      for (uint64_t position = interval.begin; position < interval.end; ++position) held.insert(position);
    }
    ASSERT_EQ(held, positions) << "source " << source;
    for (uint64_t position = 0; position < 110; ++position) {
      ASSERT_EQ(ranges.Contains(source, position), positions.contains(position));
      uint64_t next = position;
      while (positions.contains(next)) ++next;
      ASSERT_EQ(ranges.NextUntrained(source, position), next);
    }
  }
  ASSERT_EQ(ranges.TotalPositions(), total);
}

TEST(ConsumedRangesTest, IsASetOfUnits) {
  Rng rng(20240608);
  for (int trial = 0; trial < 200; ++trial) {
    const Model model = RandomModel(rng, static_cast<int>(rng.Below(60)));
    ExpectEqual(model, model.ranges);
  }
}

TEST(ConsumedRangesTest, TextGivesItBack) {
  Rng rng(20240609);
  for (int trial = 0; trial < 200; ++trial) {
    const Model model = RandomModel(rng, static_cast<int>(rng.Below(40)));
    const Result<ConsumedRanges> read = ConsumedRanges::FromText(model.ranges.ToText());
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    ExpectEqual(model, *read);
    ASSERT_EQ(read->ToText(), model.ranges.ToText());
  }
}

TEST(ConsumedRangesTest, MergeIsUnionForAnyOrder) {
  Rng rng(20240610);
  for (int trial = 0; trial < 100; ++trial) {
    const Model model = RandomModel(rng, 50);
    // Deals the positions to three workers, whose ranges are merged both ways.
    ConsumedRanges parts[3];
    for (const auto& [source, positions] : model.positions) {
      for (const uint64_t position : positions) parts[rng.Below(3)].Add({source, position, position + 1});
    }
    ConsumedRanges forward;
    for (const ConsumedRanges& part : parts) forward.Merge(part);
    ConsumedRanges backward;
    for (int i = 2; i >= 0; --i) backward.Merge(parts[i]);
    ExpectEqual(model, forward);
    ExpectEqual(model, backward);
  }
}

TEST(ConsumedRangesTest, WritesOneSourceALine) {
  ConsumedRanges ranges;
  EXPECT_TRUE(ranges.empty());
  EXPECT_EQ(ranges.ToText(), "");
  ranges.Add({3, 1024, 2048});
  ranges.Add({3, 0, 512});
  ranges.Add({0, 5, 6});
  ranges.Add({0, 6, 9});
  ranges.Add({1, 4, 4});  // no positions
  EXPECT_EQ(ranges.ToText(), "0: 5-9\n3: 0-512 1024-2048\n");
  ranges.Clear();
  EXPECT_TRUE(ranges.empty());
  EXPECT_EQ(ranges.TotalPositions(), 0U);
}

TEST(ConsumedRangesTest, RefusesMalformedText) {
  for (const char* text : {"0", "0:", "0: 5", "0: 5-", "0: 9-5", "0: 5-5", "0: 0-5 4-9", "0: 0-5 5-9", "x: 0-5",
                           "0: 0-5\n0: 7-9", "0: 0-5x", "0:0-5", "-1: 0-5", "0: 0-99999999999999999999", "\n"}) {
    const Result<ConsumedRanges> read = ConsumedRanges::FromText(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), StatusCode::kBadData);
    EXPECT_THAT(read.status().message(), ::testing::HasSubstr("ledger line"));
  }
}

TEST(ConsumedRangesDeathTest, AUnitThatIsTrainedTwiceIsABug) {
  ConsumedRanges ranges;
  ranges.Add({0, 10, 20});
  EXPECT_DEATH(ranges.Add({0, 19, 25}), "trained twice");
  EXPECT_DEATH(ranges.Add({0, 5, 11}), "trained twice");
  EXPECT_DEATH(ranges.Add({0, 12, 13}), "trained twice");
  EXPECT_DEATH(ranges.Add({0, 5, 30}), "trained twice");
}

}  // namespace
}  // namespace millrace
