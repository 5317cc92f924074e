#include "clickgen/row_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "clickgen/row_text.h"

namespace millrace {
namespace {

using testing::HasSubstr;

TEST(ClickLogOptions, EveryMistakeIsNamedAtOnce) {
  ClickLogOptions options;
  options.parts = 0;
  options.missing = 1;
  options.fm_slots = 99;
  const Status status = Validate(options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(status.message(), HasSubstr("parts must be 1 to 100000: 0"));
  EXPECT_THAT(status.message(), HasSubstr("missing must be in [0, 1): 1"));
  EXPECT_THAT(status.message(), HasSubstr("fm_slots must be 0 to slots: 99"));
  EXPECT_TRUE(Validate(ClickLogOptions{}).ok());
}

TEST(ClickLogOptions, PlansSlotsOfAllSizes) {
  const std::vector<SlotPlan> plan = PlanSlots(ClickLogOptions{});
  ASSERT_EQ(plan.size(), 26u);
  EXPECT_EQ(plan[25].name, "C26");
  std::set<uint64_t> sizes;
  int many_valued = 0;
  int in_fm = 0;
  for (const SlotPlan& slot : plan) {
    sizes.insert(slot.vocabulary);
    many_valued += slot.max_length > 1 ? 1 : 0;
    in_fm += slot.in_fm ? 1 : 0;
  }
  EXPECT_LT(*sizes.begin(), 10u);
  EXPECT_GT(*sizes.rbegin(), 50000u);
  EXPECT_EQ(many_valued, 4);
  EXPECT_EQ(in_fm, 6);
}

TEST(RowSampler, ARowIsAFunctionOfItsNumber) {
  const RowSampler a(ClickLogOptions{});
  const RowSampler b(ClickLogOptions{});
  ClickRow first;
  ClickRow again;
  a.Sample(0, 17, &first);
  b.Sample(0, 3, &again);
  b.Sample(0, 17, &again);
  EXPECT_EQ(first.ids, again.ids);
  EXPECT_EQ(first.dense, again.dense);
  EXPECT_EQ(first.probability, again.probability);
  a.Sample(1, 17, &again);
  EXPECT_NE(first.ids, again.ids) << "the test split must not repeat the training split";
}

TEST(RowSampler, SeedsGiveOtherRows) {
  ClickLogOptions options;
  ClickRow one;
  RowSampler(options).Sample(0, 0, &one);
  options.seed = 2;
  ClickRow two;
  RowSampler(options).Sample(0, 0, &two);
  EXPECT_NE(one.ids, two.ids);
}

TEST(RowSampler, RatesAreAsAsked) {
  ClickLogOptions options;
  options.click_rate = 0.1;
  options.missing = 0.2;
  const RowSampler sampler(options);
  ClickRow row;
  constexpr int kRows = 20000;
  double probability = 0;
  int64_t missing_slots = 0;
  int64_t missing_counts = 0;
  for (int i = 0; i < kRows; ++i) {
    sampler.Sample(0, i, &row);
    probability += row.probability;
    for (size_t slot = 0; slot < row.ends.size(); ++slot) {
      missing_slots += row.ends[slot] == (slot == 0 ? 0 : row.ends[slot - 1]) ? 1 : 0;
    }
    for (int count : row.dense) missing_counts += count < 0 ? 1 : 0;
  }
  EXPECT_NEAR(probability / kRows, 0.1, 0.005);
  EXPECT_NEAR(static_cast<double>(missing_slots) / kRows / 26, 0.2, 0.005);
  EXPECT_NEAR(static_cast<double>(missing_counts) / kRows / 13, 0.2, 0.005);
}

TEST(RowSampler, LabelsFollowTheirProbabilities) {
  const RowSampler sampler(ClickLogOptions{});
  ClickRow row;
  double surplus = 0;
  double variance = 0;
  for (int i = 0; i < 20000; ++i) {
    sampler.Sample(0, i, &row);
    surplus += (row.clicked ? 1 : 0) - row.probability;
    variance += row.probability * (1 - row.probability);
  }
  EXPECT_LT(std::abs(surplus) / std::sqrt(variance), 5);
}

TEST(RowSampler, LocalIdsAreTheVocabulary) {
  ClickLogOptions options;
  options.zipf = 0;
  options.vocabulary = 50;
  options.missing = 0;
  const RowSampler sampler(options);
  std::vector<std::set<uint64_t>> seen(26);
  ClickRow row;
  for (int i = 0; i < 5000; ++i) {
    sampler.Sample(0, i, &row);
    uint32_t next = 0;
    for (size_t slot = 0; slot < 26; ++slot) {
      for (; next < row.ends[slot]; ++next) seen[slot].insert(row.ids[next]);
    }
  }
  for (size_t slot = 0; slot < 26; ++slot) {
    const uint64_t vocabulary = sampler.slots()[slot].vocabulary;
    EXPECT_EQ(seen[slot].size(), vocabulary) << slot;
    EXPECT_EQ(*seen[slot].begin(), 1u);
    EXPECT_EQ(*seen[slot].rbegin(), vocabulary);
  }
}

TEST(RowSampler, HashedIdsDifferBetweenSlots) {
  ClickLogOptions options;
  options.ids = ClickLogOptions::Ids::kHash64;
  options.vocabulary = 4;
  options.missing = 0;
  const RowSampler sampler(options);
  std::set<uint64_t> ids;
  ClickRow row;
  for (int i = 0; i < 1000; ++i) {
    sampler.Sample(0, i, &row);
    ids.insert(row.ids.begin(), row.ids.end());
  }
  EXPECT_EQ(ids.size(), 26u * 4);
  EXPECT_GT(*ids.rbegin(), uint64_t{1} << 60);
}

TEST(RowText, WritesBothFormats) {
  const ClickRow row{.clicked = true, .probability = 0.5, .dense = {1, -1}, .ids = {7, 5, 9}, .ends = {1, 1, 3}};
  std::string text;
  RowText(ClickLogOptions::Format::kMultiSlot).Append(row, &text);
  RowText(ClickLogOptions::Format::kRaw).Append(row, &text);
  EXPECT_EQ(text,
            "1 1 2 0.6931 0.0000 1 7 1 0 2 5 9\n"
            "1\t1\t\t7\t\t5,9\n");
}

TEST(RowText, WritesNumbersOfEveryLength) {
  ClickRow row;
  std::string expected = "0";
  for (uint64_t ten = 1; ten != 0; ten = ten > UINT64_MAX / 10 ? 0 : ten * 10) {
    for (const uint64_t number : {ten, ten + 7, 10 * (ten - 1) + 9, UINT64_MAX - ten}) {
      row.ids.push_back(number);
      row.ends.push_back(static_cast<uint32_t>(row.ids.size()));
      expected += "\t" + std::to_string(number);
    }
  }
  std::string text;
  RowText(ClickLogOptions::Format::kRaw).Append(row, &text);
  EXPECT_EQ(text, expected + "\n");
}

}  // namespace
}  // namespace millrace
