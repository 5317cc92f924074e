// Ranks that run the same script.

#include "ranks/collective_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Body = std::function<Status(int rank, CollectiveOrder& script)>;

/// What each rank's body comes to.
std::vector<Status> RunScript(int ranks, const Body& body) {
  return OnRanks(ranks, [&](Communicator& communicator) {
    RankCalls calls(communicator);
    CollectiveOrder script(calls);
    EXPECT_TRUE(communicator.Barrier().ok());
    const Status ended = body(communicator.rank(), script);
    EXPECT_TRUE(communicator.Barrier().ok());
    return ended;
  });
}

Status CallsInOrder(int rank, CollectiveOrder& script, int ranks) {
  for (int i = 0; i < 20; ++i) {
    std::vector<std::string> expected;
    for (int r = 0; r < ranks; ++r) expected.push_back(std::to_string(r) + "." + std::to_string(i));
    std::vector<std::string> all;
    MR_TRY(script.Together(i % 3 == 0 ? "save" : "train", expected[static_cast<size_t>(rank)], &all));
    EXPECT_EQ(all, expected);
  }
  return Status::Ok();
}

TEST(CollectiveOrderTest, EveryRankGetsWhatAllBrought) {
  for (const int ranks : {1, 2, 5}) {
    const auto ended =
        RunScript(ranks, [ranks](int rank, CollectiveOrder& script) { return CallsInOrder(rank, script, ranks); });
    for (const Status& status : ended) EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(CollectiveOrderTest, ARankThatIsFarAheadOrBehindIsWaitedFor) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const int ranks = 2 + static_cast<int>(seed % 3);
    SimulatedCluster cluster({.size = ranks, .seed = seed, .longest_delay = static_cast<int64_t>(seed % 40)});
    const Status ran = cluster.Run([&](Communicator& communicator) {
      RankCalls calls(communicator);
      CollectiveOrder script(calls);
      ASSERT_TRUE(communicator.Barrier().ok());
      const Status status = CallsInOrder(communicator.rank(), script, ranks);
      EXPECT_TRUE(status.ok()) << status.ToString();
      ASSERT_TRUE(communicator.Barrier().ok());
    });
    ASSERT_TRUE(ran.ok()) << ran.ToString();
  }
}

TEST(CollectiveOrderTest, RanksInDifferentCallsAllLearnOfItAndDoNotMeetAgain) {
  const auto ended = RunScript(3, [](int rank, CollectiveOrder& script) {
    std::vector<std::string> all;
    const Status differs = script.Together(rank == 1 ? "barrier" : "train_from_dataset", "", &all);
    EXPECT_EQ(script.Together("barrier", "", &all).code(), StatusCode::kUnavailable);
    return differs;
  });
  for (const Status& status : ended) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 0 ("), HasSubstr(") is in train_from_dataset and rank 1 ("),
                                        HasSubstr(") in barrier; ")));
  }
}

TEST(CollectiveOrderTest, OthersWaitForWhatRank0DoesForAllAndRank0ForNobody) {
  std::atomic<int> done{0};
  const auto ended = RunScript(3, [&done](int rank, CollectiveOrder& script) {
    const auto save = [&done]() -> Status {
      ++done;
      return done == 3 ? IoError("the disk is full") : Status::Ok();
    };
    if (rank == 0) {
      // Ahead of all others.
      for (int i = 0; i < 2; ++i) EXPECT_TRUE(script.ByLeader("save", save).ok());
      EXPECT_TRUE(script.ByLeader("export", [] { return Status::Ok(); }).ok());
    } else if (rank == 1) {
      EXPECT_TRUE(script.ByLeader("export", save).ok());
      for (int i = 0; i < 2; ++i) EXPECT_TRUE(script.ByLeader("save", save).ok());
      EXPECT_GE(done, 2);
    }  // rank 2 leaves it to the others
    std::vector<std::string> all;
    MR_TRY(script.Together("barrier", "", &all));
    const Status failed = script.ByLeader(rank == 2 ? "other" : "save", save);
    EXPECT_TRUE(script.Together("barrier", "", &all).ok());
    return failed;
  });
  EXPECT_EQ(ended[0].message(), "the disk is full");
  EXPECT_THAT(ended[1].message(), AllOf(HasSubstr("rank 0 ("), HasSubstr("): the disk is full")));
  EXPECT_EQ(ended[2].code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(ended[2].message(), HasSubstr("other: rank 0 does this for all ranks, and has gone on to barrier"));
  EXPECT_EQ(done, 3);
}

TEST(CollectiveOrderTest, AStopRequestEndsTheWaitForTheOthers) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(1));
  CollectiveOrder script(calls);
  std::stop_source stop;
  std::vector<std::string> all;
  Status interrupted;
  std::jthread caller([&] { interrupted = script.Together("barrier", "", &all, stop.get_token()); });
  stop.request_stop();
  caller.join();
  EXPECT_EQ(interrupted.code(), StatusCode::kCancelled);
  EXPECT_EQ(script.Together("barrier", "", &all).code(), StatusCode::kUnavailable);
}

TEST(CollectiveOrderTest, ALostRankEndsTheWaitWithItsName) {
  LocalCluster cluster(3);
  RankCalls calls(cluster.rank(1));
  CollectiveOrder script(calls);
  cluster.Lose(2);
  std::vector<std::string> all;
  const Status status = script.Together("barrier", "", &all);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("rank 2"));
}

}  // namespace
}  // namespace millrace
