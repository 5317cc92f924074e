// Requests of ranks to ranks.

#include "ranks/rank_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

std::vector<std::optional<std::string>> ToOne(int ranks, int to, std::string request) {
  std::vector<std::optional<std::string>> requests(static_cast<size_t>(ranks));
  requests[static_cast<size_t>(to)] = std::move(request);
  return requests;
}

/// Every rank asks every other one, and itself.
void AskAround(Communicator& communicator) {
  RankCalls calls(communicator);
  const std::string me = std::to_string(communicator.rank());
  calls.Serve(RankService::kFiles, [&](int from, std::string_view request, std::string* answer) {
    EXPECT_TRUE(request.ends_with(std::to_string(from)));
    *answer += std::string(request) + " from " + me;
    return Status::Ok();
  });
  ASSERT_TRUE(communicator.Barrier().ok());
  for (int i = 0; i < 5; ++i) {
    const std::string request = std::string(static_cast<size_t>(i) * 1000, 'x') + me;
    std::vector<std::optional<std::string>> requests(static_cast<size_t>(communicator.size()), request);
    if (i == 3) requests[0].reset();
    std::vector<std::string> answers;
    ASSERT_TRUE(calls.Ask(RankService::kFiles, requests, &answers).ok());
    for (size_t r = 0; r < requests.size(); ++r) {
      EXPECT_EQ(answers[r], requests[r].has_value() ? request + " from " + std::to_string(r) : "");
    }
  }
  ASSERT_TRUE(communicator.Barrier().ok());
}

TEST(RankCallsTest, EveryRankAnswersEveryOther) {
  for (const int ranks : {1, 2, 5}) OnRanks(ranks, AskAround);
}

TEST(RankCallsTest, EveryRankAnswersEveryOtherWhateverTheNetworkDelays) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedCluster cluster({.size = 3, .seed = seed, .longest_delay = 30});
    const Status ran = cluster.Run(AskAround);
    EXPECT_TRUE(ran.ok()) << ran.ToString();
  }
}

class TwoRankCalls : public testing::Test {
 protected:
  LocalCluster cluster_{2};
  RankCalls asking_{cluster_.rank(0)};
  std::vector<std::string> answers_;
};

TEST_F(TwoRankCalls, AFailureComesBackWithItsRank) {
  RankCalls asked(cluster_.rank(1));
  asked.Serve(RankService::kFiles, [](int, std::string_view, std::string*) { return BadData("no row"); });
  asked.Serve(RankService::kDense,
              [](int, std::string_view, std::string*) -> Status { throw std::runtime_error("out of something"); });
  const Status refused = asking_.Ask(RankService::kFiles, ToOne(2, 1, "x"), &answers_);
  EXPECT_EQ(refused.code(), StatusCode::kBadData);
  EXPECT_EQ(refused.message(), "rank 1: no row");
  const Status thrown = asking_.Ask(RankService::kDense, ToOne(2, 1, "x"), &answers_);
  EXPECT_EQ(thrown.code(), StatusCode::kInternal);
  EXPECT_THAT(thrown.message(), HasSubstr("out of something"));
}

TEST_F(TwoRankCalls, NobodyAnswersWhatIsNotServedAnyMore) {
  RankCalls asked(cluster_.rank(1));
  asked.Serve(RankService::kFiles, [](int, std::string_view, std::string*) { return Status::Ok(); });
  asked.Serve(RankService::kFiles, nullptr);
  const Status status = asking_.Ask(RankService::kFiles, ToOne(2, 1, "x"), &answers_);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("rank 1: nobody answers"));
}

TEST_F(TwoRankCalls, AStopRequestEndsTheWaitAndTheLateAnswerIsDropped) {
  // Rank 1 takes no messages yet: the first request waits there.
  std::stop_source stop;
  std::atomic<bool> ended = false;
  std::jthread waiting([&] {
    const Status status = asking_.Ask(RankService::kFiles, ToOne(2, 1, "first"), &answers_, stop.get_token());
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.ToString();
    ended = true;
  });
  EXPECT_FALSE(ended);
  stop.request_stop();
  waiting.join();
  EXPECT_EQ(asking_.Ask(RankService::kFiles, ToOne(2, 1, "second"), &answers_, stop.get_token()).code(),
            StatusCode::kCancelled);
  std::atomic<int> asked_for = 0;
  RankCalls asked(cluster_.rank(1));
  asked.Serve(RankService::kFiles, [&](int, std::string_view request, std::string* answer) {
    ++asked_for;
    *answer += request;
    return Status::Ok();
  });
  const Status status = asking_.Ask(RankService::kFiles, ToOne(2, 1, "third"), &answers_);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(answers_[1], "third");
}

TEST_F(TwoRankCalls, ALostRankEndsTheWait) {
  std::jthread waiting([&] {
    const Status status = asking_.Ask(RankService::kFiles, ToOne(2, 1, "x"), &answers_);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("rank 1"));
  });
  cluster_.Lose(1);
}

}  // namespace
}  // namespace millrace
