#include "session/process_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/quick_amount.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

TEST(ProcessRanksTest, RanksShareACommonList) {
  EXPECT_THAT(FilesOfRanks({{"a", "b"}, {"a", "b"}}).value(), ElementsAre("a", "b"));
}

TEST(ProcessRanksTest, ListsOfTheirOwnAreConcatenated) {
  EXPECT_THAT(FilesOfRanks({{"a"}, {}, {"b", "c"}}).value(), ElementsAre("a", "b", "c"));
}

TEST(ProcessRanksTest, DifferentListsMustNotShareFiles) {
  const Status status = FilesOfRanks({{"a", "b"}, {"b"}}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("ranks 0 and 1 both have \"b\""));
}

TEST(ProcessRanksTest, AProcessWithoutLauncherIsSolo) {
  const ProcessRanks& ranks = **RanksOfProcess();
  EXPECT_FALSE(ranks.are_several());
  EXPECT_EQ(ranks.of_session(), nullptr);
  EXPECT_THAT(ranks.Together("call", "mine", {}).value(), ElementsAre("mine"));
  EXPECT_EQ(ranks.ByLeader("call", [] { return NotFound("it"); }, {}).code(), StatusCode::kNotFound);
  EXPECT_FALSE(HasRanksToEnd());
}

TEST(QuickAmountTest, RemembersTheLargestQuickAmount) {
  QuickAmount quick;
  EXPECT_FALSE(quick.Contains(0));
  quick.Note(100, std::chrono::milliseconds(1));
  EXPECT_TRUE(quick.Contains(100));
  EXPECT_FALSE(quick.Contains(101));
  quick.Note(50, std::chrono::milliseconds(20));
  EXPECT_FALSE(quick.Contains(50));
  EXPECT_TRUE(quick.Contains(49));
}

}  // namespace
}  // namespace millrace
