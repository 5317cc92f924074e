#include "ranks/rank_restarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"
#include "ranks/rank_group.h"
#include "sanitized.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

/// A job of rounds, whose only state is the last round that rank 0 saved.
Status RunRounds(RankGroup& ranks, int* saved) {
  std::string from = std::to_string(*saved);
  MR_TRY(ranks.FromLeader(&from));
  ranks.restarts()->GoOn(std::stoi(from));
  for (int round = std::stoi(from); round < 20; ++round) {
    ranks.restarts()->SetReached(round);
    int64_t sum = 1;
    MR_TRY(ranks.communicator().SumOverRanks({&sum, 1}));
    EXPECT_EQ(sum, ranks.size());
    if (ranks.leads() && round % 3 == 2) *saved = round;
  }
  if (ranks.leads()) *saved = 20;
  return ranks.Agree(Status::Ok());
}

TEST(RankRestarts, WhoeverIsLostTheOthersEndTheJob) {
  const uint64_t seeds = kIsSanitized ? 30 : 500;
  std::set<int> restarts;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto at = static_cast<int64_t>(seed * 13 % 350);
    const std::set<int> lost = {static_cast<int>(seed % 4), static_cast<int>(seed / 4 % 4)};
    SimulationOptions options{.size = 4, .seed = seed};
    for (const int rank : lost) options.losses.push_back({rank, at + rank * static_cast<int64_t>(seed % 9)});
    SimulatedCluster cluster(options);
    int saved = 0;
    const Status status = cluster.Run([&](Communicator& communicator) {
      const int number = communicator.rank();
      int count = 0;
      std::string told;
      const Status ended = RunOnRanks(
          communicator, {},
          [&](RankGroup& ranks) {
            count = ranks.restarts()->count();
            for (int r = 0; count == 1 && r < 4; ++r) {
              const std::string named = "rank " + std::to_string(r) + " (";
              EXPECT_TRUE(lost.contains(r) || ranks.restarts()->last_lost().find(named) == std::string::npos);
            }
            return RunRounds(ranks, &saved);
          },
          [&](const Status& failure) { told = failure.ToString(); });
      if (lost.contains(number)) return;  // if it was still there
      EXPECT_TRUE(ended.ok()) << ended.ToString();
      EXPECT_EQ(told, "");
      restarts.insert(count);
    });
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(saved, 20);
    if (HasFailure()) return;
  }
  // One by one, both at once, and behind the end.
  EXPECT_EQ(restarts, (std::set<int>{0, 1, 2}));
}

/// Runs a job of several ranks; what each ended with.
std::vector<Status> RunJobOn(const LocalCluster& cluster, const std::stop_token& stop,
                             const std::function<Status(RankGroup& ranks)>& run, std::string* told) {
  return OnRanks(cluster, [&](Communicator& communicator) {
    return RunOnRanks(communicator, stop, run, [told](const Status& failure) { *told += failure.ToString() + "\n"; });
  });
}

TEST(RankRestarts, WhoIsLostIsNamedAndWhatIsTrainedOnceMoreIsCounted) {
  LocalCluster cluster(3);
  std::string told;
  const std::vector<Status> ended = RunJobOn(
      cluster, {},
      [&](RankGroup& ranks) {
        RankRestarts& restarts = *ranks.restarts();
        if (restarts.count() == 0) {
          restarts.SetReached(700);
          if (ranks.rank() == 1) cluster.Lose(1);
          Status status;
          while (status.ok()) status = ranks.communicator().Barrier();
          return status;
        }
        restarts.GoOn(500);
        EXPECT_THAT(restarts.last_lost(), HasSubstr("rank 1 (" + HostName() + ")"));
        EXPECT_EQ(restarts.replayed(), 200);
        EXPECT_GT(restarts.seconds(), 0);
        return Status::Ok();
      },
      &told);
  EXPECT_TRUE(ended[0].ok());
  EXPECT_EQ(ended[1].code(), StatusCode::kUnavailable);
  EXPECT_TRUE(ended[2].ok());
  EXPECT_EQ(told, "");
}

/// Runs a job of two ranks that is asked to stop, loses rank 1 and ends by `end`.
std::vector<Status> StopAndLoseOne(const std::function<Status(RankGroup& ranks)>& end, std::string* told) {
  LocalCluster cluster(2);
  std::stop_source stop;
  const auto run = [&](RankGroup& ranks) {
    EXPECT_EQ(ranks.restarts()->count(), 0);
    stop.request_stop();
    if (ranks.rank() == 1) cluster.Lose(1);
    return end(ranks);
  };
  return RunJobOn(cluster, stop.get_token(), run, told);
}

TEST(RankRestarts, BehindAStopRequestNobodyBeginsAgain) {
  std::string told;
  const auto wait = [](RankGroup& ranks) {
    Status status;
    while (status.ok()) status = ranks.communicator().Barrier();
    return status;
  };
  for (const Status& status : StopAndLoseOne(wait, &told)) EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(told, HasSubstr("rank 1 of 2 is lost"));
}

TEST(RankRestarts, BehindAStopRequestAnEndOfTheJobIsOneWhoeverIsLostThen) {
  std::string told;
  const std::vector<Status> ended = StopAndLoseOne([](RankGroup&) { return Status::Ok(); }, &told);
  EXPECT_TRUE(ended[0].ok()) << ended[0].ToString();
  EXPECT_EQ(told, "");
}

TEST(RankRestarts, AFailureOfTheJobIsToldOnceAndEndsIt) {
  for (const StatusCode code : {StatusCode::kBadData, StatusCode::kUnavailable}) {
    LocalCluster cluster(3);
    std::string told;
    const std::vector<Status> ended = RunJobOn(
        cluster, {},
        [&](RankGroup& ranks) {
          return ranks.Agree({code, "no such host"});
        },
        &told);
    for (const Status& status : ended) EXPECT_EQ(status.code(), code);
    EXPECT_EQ(told, Status(code, "no such host").ToString() + "\n");
  }
}

}  // namespace
}  // namespace millrace
