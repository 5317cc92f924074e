#include "comm/simulated_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator_cases.h"
#include "sanitized.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = SimulatedEvent::Kind;

std::vector<CommunicatorCase> CasesForASimulation() {
  std::vector<CommunicatorCase> cases = CommunicatorCases();
  std::erase_if(cases, [](const auto& each) { return each.has_threads || each.is_big; });
  return cases;
}

class SimulatedClusterCase : public testing::TestWithParam<CommunicatorCase> {};

TEST_P(SimulatedClusterCase, Holds) {
  const uint64_t seeds = kIsSanitized ? 10 : 100;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    SimulationOptions options{.size = static_cast<int>(seed % 4) + 1, .seed = seed};
    if (seed % 3 == 1) options.longest_delay = 20;
    if (seed % 5 == 2) options.partitions = {{.one = {0}, .other = {1, 2}, .begin = 10, .end = 200}};
    SimulatedCluster cluster(options);
    const Status status = cluster.Run(GetParam().run);
    ASSERT_TRUE(status.ok()) << status.ToString();
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedClusterCase, testing::ValuesIn(CasesForASimulation()),
                         [](const auto& instance) { return std::string(instance.param.name); });

/// Collects what comes.
class Collecting : public MessageReceiver {
 public:
  explicit Collecting(Communicator& comm) : comm_(comm) { comm_.SetReceiver(this); }
  ~Collecting() override { comm_.SetReceiver(nullptr); }
  void OnMessage(int from, std::string message) override { got.push_back(std::to_string(from) + message); }
  Status Await(size_t count) {
    return comm_.WaitUntil([this, count] { return got.size() >= count; });
  }
  std::vector<std::string> got;

 private:
  Communicator& comm_;
};

/// Each sends three to each, and sums.
void Mingle(Communicator& comm) {
  Collecting collecting(comm);
  for (const char* text : {"a", "b", "c"}) {
    for (int to = 0; to < comm.size(); ++to) (void)comm.Send(to, text);
  }
  (void)collecting.Await(3 * static_cast<size_t>(comm.size()));
  int64_t one = 1;
  (void)comm.SumOverRanks({&one, 1});
}

TEST(SimulatedCluster, ASeedDecidesTheOrderOfEvents) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SimulationOptions options{.size = 3,
                                    .seed = seed,
                                    .longest_delay = 10,
                                    .partitions = {{.one = {0}, .other = {2}, .begin = 5, .end = 30}},
                                    .losses = {{.rank = 1, .at = static_cast<int64_t>(seed) * 5}}};
    SimulatedCluster first(options), second(options);
    EXPECT_TRUE(first.Run(Mingle).ok());
    EXPECT_TRUE(second.Run(Mingle).ok());
    ASSERT_FALSE(first.events().empty());
    EXPECT_TRUE(first.events() == second.events());
    // Another run of the same begins anew.
    EXPECT_TRUE(second.Run(Mingle).ok());
    EXPECT_TRUE(first.events() == second.events());
    std::string order;
    for (const SimulatedEvent& event : first.events()) order += ToString(event) + "\n";
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 20);
}

/// Of two messages from two ranks either may come first; a thousand seeds show both, and each order of three ranks.
TEST(SimulatedCluster, SeedsReachAllOrders) {
  std::set<std::vector<std::string>> orders;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SimulatedCluster cluster({.size = 4, .seed = seed});
    EXPECT_TRUE(cluster
                    .Run([&](Communicator& comm) {
                      if (comm.rank() > 0) {
                        EXPECT_TRUE(comm.Send(0, "x").ok());
                        return;
                      }
                      Collecting collecting(comm);
                      EXPECT_TRUE(collecting.Await(3).ok());
                      orders.insert(collecting.got);
                    })
                    .ok());
  }
  EXPECT_EQ(orders.size(), 6);
}

TEST(SimulatedCluster, MessagesWaitWhileRanksAreApart) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimulatedCluster cluster({.size = 3, .seed = seed, .partitions = {{{0}, {1}, 0, 1000}}});
    EXPECT_TRUE(cluster
                    .Run([](Communicator& comm) {
                      Collecting collecting(comm);
                      for (int to = 0; to < comm.size(); ++to) EXPECT_TRUE(comm.Send(to, "x").ok());
                      EXPECT_TRUE(collecting.Await(3).ok());
                    })
                    .ok());
    int across = 0;
    for (const SimulatedEvent& event : cluster.events()) {
      if (event.kind != Kind::kDeliver || event.from + event.to != 1 || event.from == event.to) continue;
      EXPECT_GE(event.time, 1000);
      ++across;
    }
    EXPECT_EQ(across, 2);
  }
}

TEST(SimulatedCluster, ALostRankFailsAndTheOthersAreTold) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedCluster cluster({.size = 3, .seed = seed, .losses = {{.rank = 1, .at = static_cast<int64_t>(seed % 40)}}});
    std::vector<Status> failures(3);
    // Nobody ends by itself, whatever the ranks do when it is lost.
    EXPECT_TRUE(cluster
                    .Run([&](Communicator& comm) {
                      Collecting collecting(comm);
                      Status status;
                      for (size_t round = 1; status.ok(); ++round) {
                        for (int to = 0; to < comm.size() && status.ok(); ++to) status = comm.Send(to, "x");
                        if (status.ok()) status = collecting.Await(3 * round);
                        if (status.ok() && seed % 2 == 0) status = comm.Barrier();
                        std::string bytes;
                        if (status.ok() && seed % 3 == 0) status = comm.Broadcast(2, &bytes);
                      }
                      failures[static_cast<size_t>(comm.rank())] = status;
                      EXPECT_EQ(comm.Barrier().ToString(), status.ToString());
                    })
                    .ok());
    for (const Status& failure : failures) {
      EXPECT_EQ(failure.code(), StatusCode::kUnavailable);
      EXPECT_THAT(failure.message(), HasSubstr("rank 1 of 3"));
    }
  }
}

TEST(SimulatedCluster, RanksThatAreLeftGoOn) {
  const uint64_t seeds = kIsSanitized ? 20 : 300;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto at = [&](int64_t more) { return static_cast<int64_t>(seed * 7 % 190) + more; };
    SimulatedCluster cluster(
        {.size = 4,
         .seed = seed,
         .longest_delay = seed % 2 == 0 ? 0 : 10,
         .losses = {{.rank = 1, .at = at(0)}, {.rank = 0, .at = at(static_cast<int64_t>(seed % 11))}}});
    int ended = 0;
    std::string told;
    const Status status = cluster.Run([&](Communicator& comm) {
      const int number = comm.rank();
      for (int left = 4;; left = comm.size()) {
        EXPECT_EQ(comm.size(), left);
        Status worked;
        for (int round = 0; round < 12 && worked.ok(); ++round) {
          std::vector<std::string> in;
          worked = comm.AllToAll(std::vector<std::string>(static_cast<size_t>(left), std::to_string(comm.rank())), &in);
          for (size_t r = 0; worked.ok() && r < in.size(); ++r) EXPECT_EQ(in[r], std::to_string(r));
          if (worked.ok()) worked = comm.Send((comm.rank() + 1) % left, "x");
          Collecting collecting(comm);
          if (worked.ok()) worked = collecting.Await(1);
          if (!worked.ok()) break;
          EXPECT_THAT(collecting.got, ElementsAre(std::to_string((comm.rank() + left - 1) % left) + "x"));
        }
        if (worked.ok()) {
          ++ended;
          return;
        }
        if (const Status shrunk = comm.Shrink(); !shrunk.ok()) {
          told += std::to_string(number) + ": " + shrunk.ToString() + "; ";
          return;
        }
      }
    });
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_GE(ended, 2) << told;
    if (HasFailure()) return;
  }
}

TEST(SimulatedCluster, WhoWaitsInVainIsSaid) {
  SimulatedCluster cluster({.size = 3, .seed = 7});
  std::vector<Status> statuses(3);
  const Status status = cluster.Run([&](Communicator& comm) {
    if (comm.rank() == 0) statuses[0] = comm.WaitUntil([] { return false; });
    if (comm.rank() == 1) statuses[1] = comm.Barrier();
    if (comm.rank() == 2) statuses[2] = comm.Send(0, "nobody takes it");
  });
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "nobody can go on, and no message is under way: rank 0 waits in WaitUntil and has no receiver for 1 "
            "messages, rank 1 waits in Barrier, rank 2 has ended");
  EXPECT_EQ(statuses[0].ToString(), status.ToString());
  EXPECT_EQ(statuses[1].ToString(), status.ToString());
  EXPECT_TRUE(statuses[2].ok());
}

TEST(SimulatedCluster, WhoGoesOnForEverIsStopped) {
  SimulatedCluster cluster({.size = 2, .seed = 1, .most_events = 1000});
  const Status status = cluster.Run([](Communicator& comm) {
    Status sent;
    while (sent.ok()) sent = comm.Send(0, "again");
  });
  EXPECT_THAT(status.message(), HasSubstr("more than 1000 events"));
}

TEST(SimulatedCluster, TheRootOfABroadcastGoesOnBeforeTheOthers) {
  bool did_go_on = false;
  for (uint64_t seed = 0; seed < 50 && !did_go_on; ++seed) {
    SimulatedCluster cluster({.size = 2, .seed = seed});
    bool has_come = false;
    EXPECT_TRUE(cluster
                    .Run([&](Communicator& comm) {
                      std::string bytes = comm.rank() == 0 ? "x" : "";
                      if (comm.rank() == 1) has_come = true;
                      EXPECT_TRUE(comm.Broadcast(0, &bytes).ok());
                      EXPECT_EQ(bytes, "x");
                      if (comm.rank() == 0 && !has_come) did_go_on = true;
                    })
                    .ok());
  }
  EXPECT_TRUE(did_go_on);
}

TEST(SimulatedCluster, MistakesOfBodiesAreReported) {
  SimulatedCluster cluster({.size = 2, .seed = 3});
  const Status differ = cluster.Run([](Communicator& comm) {
    int64_t value = 0;
    if (comm.rank() == 0) (void)comm.Barrier();
    if (comm.rank() == 1) (void)comm.SumOverRanks({&value, 1});
  });
  EXPECT_THAT(differ.message(), HasSubstr("different collectives"));

  const Status thrown = cluster.Run([](Communicator& comm) {
    if (comm.rank() == 1) throw std::runtime_error("cannot go on");
  });
  EXPECT_THAT(thrown.message(), HasSubstr("cannot go on"));

  const Status other_thread = cluster.Run([](Communicator& comm) {
    Status status;
    std::jthread([&] { status = comm.Send(0, "x"); }).join();
    EXPECT_THAT(status.message(), HasSubstr("no rank of the simulation"));
  });
  EXPECT_TRUE(other_thread.ok());

  struct Waiting : MessageReceiver {
    explicit Waiting(Communicator* c) : comm(c) {}
    void OnMessage(int, std::string) override { status = comm->Barrier(); }
    Communicator* comm;
    Status status;
  };
  const Status waits = cluster.Run([](Communicator& comm) {
    Waiting receiver(&comm);
    comm.SetReceiver(&receiver);
    EXPECT_TRUE(comm.Send(comm.rank(), "x").ok());
    EXPECT_TRUE(comm.WaitUntil([&] { return !receiver.status.ok(); }).ok());
    comm.SetReceiver(nullptr);
    EXPECT_EQ(receiver.status.code(), StatusCode::kInternal);
  });
  EXPECT_TRUE(waits.ok());
}

}  // namespace
}  // namespace millrace
