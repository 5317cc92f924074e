#include "comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator_cases.h"
#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/solo_communicator.h"
#include "sanitized.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class LocalClusterCase : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(LocalClusterCase, Holds) {
  if (GetParam().is_big && kIsSanitized) GTEST_SKIP() << "sanitizers make hundreds of megabytes slow";
  for (const int size : {1, 2, 3, 5}) {
    if (GetParam().is_big && size > 2) continue;
    SCOPED_TRACE(size);
    OnRanks(size, GetParam().run);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LocalClusterCase, testing::ValuesIn(CommunicatorCases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

class SoloCommunicatorCase : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(SoloCommunicatorCase, Holds) {
  if (GetParam().is_big && kIsSanitized) GTEST_SKIP() << "sanitizers make hundreds of megabytes slow";
  SoloCommunicator comm;
  GetParam().run(comm);
}

INSTANTIATE_TEST_SUITE_P(All, SoloCommunicatorCase, testing::ValuesIn(CommunicatorCases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(SoloCommunicator, DoesNotShrinkSinceNobodyIsLost) {
  SoloCommunicator comm;
  EXPECT_EQ(comm.Shrink().code(), StatusCode::kInternal);
}

TEST(LocalCluster, CollectivesWaitForAllRanks) {
  std::atomic<int> begun{0};
  OnRanks(4, [&](Communicator& comm) {
    for (int round = 1; round <= 100; ++round) {
      ++begun;
      EXPECT_TRUE(comm.Barrier().ok());
      EXPECT_GE(begun, 4 * round);
    }
  });
}

/// One waits for a message, one for a collective, one comes later: all learn who is lost.
TEST(LocalCluster, ALostRankEndsAllCalls) {
  LocalCluster cluster(4);
  std::atomic<int> waiting{0};
  OnRanks(cluster, [&](Communicator& comm) {
    Status status;
    switch (comm.rank()) {
      case 0: {
        status = comm.WaitUntil([&] {
          ++waiting;
          return false;
        });
        break;
      }
      case 1:
        ++waiting;
        status = comm.Barrier();
        break;
      case 2:
        while (waiting < 2) std::this_thread::yield();
        cluster.Lose(2);
        status = comm.Send(0, "too late");
        break;
      default:
        while (status.ok()) status = comm.Send(3, "again");
    }
    for (const Status& each : {status, comm.Barrier(), comm.Send(0, ""), comm.WaitUntil([] { return true; })}) {
      EXPECT_EQ(each.code(), StatusCode::kUnavailable);
      EXPECT_THAT(each.message(), HasSubstr("rank 2 of 4"));
    }
  });
}

TEST(LocalCluster, RanksThatAreLeftGoOn) {
  LocalCluster cluster(4);
  OnRanks(cluster, [&](Communicator& comm) {
    RanksGoOnWithoutTheLast(comm, [&cluster, number = comm.rank()] { cluster.Lose(number); });
  });
}

TEST(LocalCluster, TwoRanksAreLostWhileTheOthersShrink) {
  LocalCluster cluster(4);
  OnRanks(cluster, [&](Communicator& comm) {
    const int number = comm.rank();
    if (number == 1) return cluster.Lose(1);
    EXPECT_EQ(comm.Barrier().code(), StatusCode::kUnavailable);
    if (number == 2) return cluster.Lose(2);
    const Status shrunk = comm.Shrink();
    ASSERT_TRUE(shrunk.ok()) << shrunk.ToString();
    // Rank 2 may be lost before the others shrink, meanwhile, or behind that.
    if (comm.size() == 3) {
      EXPECT_EQ(comm.Barrier().code(), StatusCode::kUnavailable);
      EXPECT_TRUE(comm.Shrink().ok());
    }
    EXPECT_EQ(comm.size(), 2);
    EXPECT_EQ(comm.rank(), number == 0 ? 0 : 1);
    EXPECT_TRUE(comm.Barrier().ok());
  });
}

TEST(LocalCluster, DifferentCollectivesAreAMistakeThatAllSee) {
  OnRanks(2, [](Communicator& comm) {
    std::string bytes;
    const Status status = comm.rank() == 0 ? comm.Barrier() : comm.Broadcast(1, &bytes);
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 Barrier (root 0, 0 values), rank 1 Broadcast (root 1"));
  });
}

class Throwing : public MessageReceiver {
 public:
  void OnMessage(int, std::string) override { throw std::runtime_error("cannot take it"); }
};

TEST(LocalCluster, WhatAReceiverThrowsEndsTheWaiting) {
  LocalCluster cluster(1);
  Throwing receiver;
  cluster.rank(0).SetReceiver(&receiver);
  EXPECT_TRUE(cluster.rank(0).Send(0, "x").ok());
  const Status status = cluster.rank(0).WaitUntil([] { return false; });
  EXPECT_THAT(status.ToString(), HasSubstr("cannot take it"));
}

/// A receiver is no longer called when SetReceiver has returned, whatever is under way.
TEST(LocalCluster, ReceiversGoWhileMessagesCome) {
  LocalCluster cluster(2);
  std::atomic<bool> stop{false};
  const std::jthread sender([&] {
    while (!stop) EXPECT_TRUE(cluster.rank(1).Send(0, "x").ok());
  });
  struct ScopedCounters : MessageReceiver {
    void OnMessage(int, std::string) override { ++count; }
    int count = 0;
  };
  for (int i = 0; i < 200; ++i) {
    auto receiver = std::make_unique<ScopedCounters>();
    cluster.rank(0).SetReceiver(receiver.get());
    EXPECT_TRUE(cluster.rank(0).WaitUntil([&] { return receiver->count > 0; }).ok());
    cluster.rank(0).SetReceiver(nullptr);
  }
  stop = true;
}

}  // namespace
}  // namespace millrace
