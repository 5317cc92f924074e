// How ranks at their own pace know of each other.

#include "ranks/rank_pace.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"

namespace millrace {
namespace {

/// Batches of a rank in a pass: some ranks have none.
int64_t BatchesOf(int rank, int64_t pass) { return rank == 1 && pass == 1 ? 0 : 5 + 3 * rank + pass; }

/// Trains two passes, and comes to whatever meeting is due. Rank 2 calls one in the middle of each.
void TrainPasses(Communicator& communicator, int64_t ahead, std::vector<std::atomic<int64_t>>& trained) {
  RankCalls calls(communicator);
  // One thread both trains and comes to meetings, so that a meeting ends its wait for others.
  std::mutex mutex;
  std::stop_source due;
  const auto renewed = [&] {
    const std::lock_guard lock(mutex);
    due = std::stop_source();
    return due.get_token();
  };
  std::array<int64_t, 2> of_others{};
  const auto me = static_cast<size_t>(communicator.rank());
  RankPace pace(calls, RankPace::Tell::kEveryBatch,
                {[&] {
                   const std::lock_guard lock(mutex);
                   due.request_stop();
                 },
                 [&](int64_t batches, int64_t examples) {
                   of_others[0] += batches;
                   of_others[1] += examples;
                 }});
  const auto meet = [&](int64_t failed) {
    std::array<int64_t, 1> sums = {failed};
    const Result<bool> over = pace.Meet(sums);
    EXPECT_TRUE(over.ok()) << over.status().ToString();
    EXPECT_EQ(sums[0], failed * communicator.size());
    return over.ok() && *over;
  };
  for (int64_t pass = 0; pass < 2; ++pass) {
    of_others = {};
    pace.StartPass(pass, 0);
    trained[me] = 0;
    ASSERT_TRUE(communicator.Barrier().ok());
    bool is_over = false;
    for (int64_t batch = 0; batch < BatchesOf(communicator.rank(), pass); ++batch) {
      while (true) {
        const std::stop_token is_called = renewed();
        if (pace.is_due()) {
          is_over = meet(1);
          continue;
        }
        ASSERT_TRUE(pace.WaitForOthers(ahead, is_called).ok());
        if (!is_called.stop_requested()) break;
      }
      for (size_t r = 0; r < trained.size(); ++r) {
        if (trained[r] == BatchesOf(static_cast<int>(r), pass)) continue;
        EXPECT_LE(trained[me] - trained[r], ahead) << "rank " << me << " beside rank " << r;
      }
      ++trained[me];
      ASSERT_TRUE(pace.Trained(10).ok());
      if (communicator.rank() == 2 && batch == 3) pace.Call();
    }
    EXPECT_TRUE(pace.End().ok());
    while (!is_over) {
      if (communicator.WaitUntil([&] { return pace.is_due(); }).ok()) is_over = meet(1);
    }
    int64_t expected = 0;
    for (int r = 0; r < communicator.size(); ++r) {
      if (r != communicator.rank()) expected += BatchesOf(r, pass);
    }
    EXPECT_EQ(of_others[0], expected);
    EXPECT_EQ(of_others[1], 10 * expected);
    ASSERT_TRUE(communicator.Barrier().ok());
  }
}

TEST(RankPaceTest, NoRankIsFurtherAheadThanAllowedAndMeetingsKnowAll) {
  for (const int64_t ahead : {0, 2}) {
    std::vector<std::atomic<int64_t>> trained(4);
    OnRanks(4, [&](Communicator& rank) { TrainPasses(rank, ahead, trained); });
  }
}

TEST(RankPaceTest, WhateverTheNetworkDelays) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::atomic<int64_t>> trained(3);
    SimulatedCluster cluster({.size = 3, .seed = seed, .longest_delay = 40});
    const Status ran = cluster.Run([&](Communicator& rank) { TrainPasses(rank, 1, trained); });
    ASSERT_TRUE(ran.ok()) << ran.ToString();
  }
}

TEST(RankPaceTest, AStopEndsAWait) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankPace pace(calls, RankPace::Tell::kEveryBatch, {[] {}, [](int64_t, int64_t) {}});
  pace.StartPass(0, 0);
  ASSERT_TRUE(pace.Trained(1).ok());
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_TRUE(pace.WaitForOthers(0, stop.get_token()).ok());
}

TEST(RankPaceTest, ALostRankEndsAWait) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankPace pace(calls, RankPace::Tell::kEveryBatch, {[] {}, [](int64_t, int64_t) {}});
  pace.StartPass(0, 0);
  ASSERT_TRUE(pace.Trained(1).ok());
  std::jthread loser([&] { cluster.Lose(1); });
  EXPECT_EQ(pace.WaitForOthers(0, {}).code(), StatusCode::kUnavailable);
}

TEST(RankPaceTest, ALostRankIsSeenByOneThatIsThroughWithThePass) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankPace pace(calls, RankPace::Tell::kNowAndThen, {[] {}, [](int64_t, int64_t) {}});
  pace.StartPass(0, 0);
  EXPECT_TRUE(pace.End().ok());
  EXPECT_TRUE(pace.End().ok());
  cluster.Lose(1);
  EXPECT_EQ(pace.End().code(), StatusCode::kUnavailable);
}

TEST(RankPaceTest, TurnsAreTakenInTheOrderOfRanks) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedCluster cluster({.size = 3, .seed = seed, .longest_delay = 20});
    std::vector<int> order;
    const Status ran = cluster.Run([&](Communicator& rank) {
      RankCalls calls(rank);
      RankPace pace(calls, RankPace::Tell::kNowAndThen, {[] {}, [](int64_t, int64_t) {}});
      pace.StartPass(0, 2);
      ASSERT_TRUE(rank.Barrier().ok());
      // Rank 1 has one batch, which is less than a turn.
      for (int batch = 0; batch < (rank.rank() == 1 ? 1 : 2); ++batch) {
        ASSERT_TRUE(pace.WaitForTurn({}).ok());
        order.push_back(rank.rank());
        EXPECT_EQ(pace.EndsTurn(), batch == 1);
        ASSERT_TRUE(pace.Trained(1).ok());
      }
      if (rank.rank() == 1) pace.EndTurn();
      ASSERT_TRUE(pace.WaitForEndOfTurns({}).ok());
      EXPECT_FALSE(pace.takes_turns());
      ASSERT_TRUE(rank.Barrier().ok());
    });
    ASSERT_TRUE(ran.ok()) << ran.ToString();
    EXPECT_EQ(order, (std::vector<int>{0, 0, 1, 2, 2}));
  }
}

}  // namespace
}  // namespace millrace
