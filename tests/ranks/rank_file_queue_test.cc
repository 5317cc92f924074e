// Files that ranks share, by number.

#include "ranks/rank_file_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"

namespace millrace {
namespace {

constexpr size_t kFiles = 23;
constexpr int64_t kPasses = 3;

/// What a rank got, by pass.
using Taken = std::vector<std::vector<size_t>>;

/// Goes through all passes, and waits for nobody between them.
void TakeAll(Communicator& communicator, Taken* taken) {
  RankCalls calls(communicator);
  RankFileQueue files(calls, communicator.size());
  ASSERT_TRUE(communicator.Barrier().ok());
  for (int64_t pass = 0; pass < kPasses; ++pass) {
    const std::unique_ptr<FileQueue> queue = files.OfPass(pass, kFiles);
    std::vector<size_t>& of_pass = taken->emplace_back();
    for (FileTurn turn = FileTurn::kFirst;; turn = FileTurn::kLater) {
      const Result<size_t> number = queue->Next(turn, {});
      ASSERT_TRUE(number.ok()) << number.status().ToString();
      if (*number >= kFiles) break;
      of_pass.push_back(*number);
    }
    // What has ended stays so.
    EXPECT_GE(queue->Next(FileTurn::kLater, {}).value(), kFiles);
  }
  ASSERT_TRUE(communicator.Barrier().ok());
}

void ExpectEachOnce(const std::vector<Taken>& taken) {
  for (size_t pass = 0; pass < kPasses; ++pass) {
    std::vector<size_t> all;
    for (const Taken& of_rank : taken) {
      EXPECT_TRUE(std::is_sorted(of_rank[pass].begin(), of_rank[pass].end()));
      all.insert(all.end(), of_rank[pass].begin(), of_rank[pass].end());
    }
    std::sort(all.begin(), all.end());
    std::vector<size_t> expected;
    for (size_t file = 0; file < kFiles; ++file) expected.push_back(file);
    EXPECT_EQ(all, expected) << "pass " << pass;
  }
}

TEST(RankFileQueueTest, EachFileIsHandedOutOnceAPass) {
  for (const int ranks : {1, 2, 3, 5}) {
    std::vector<Taken> taken(static_cast<size_t>(ranks));
    OnRanks(ranks, [&](Communicator& communicator) {
      TakeAll(communicator, &taken[static_cast<size_t>(communicator.rank())]);
    });
    ExpectEachOnce(taken);
  }
}

TEST(RankFileQueueTest, EachFileIsHandedOutOnceWhateverTheNetworkDelays) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const int ranks = 2 + static_cast<int>(seed % 4);
    SimulatedCluster cluster({.size = ranks, .seed = seed, .longest_delay = static_cast<int64_t>(seed % 40)});
    std::vector<Taken> taken(static_cast<size_t>(ranks));
    const Status ran = cluster.Run(
        [&](Communicator& communicator) { TakeAll(communicator, &taken[static_cast<size_t>(communicator.rank())]); });
    ASSERT_TRUE(ran.ok()) << ran.ToString();
    ExpectEachOnce(taken);
  }
}

TEST(RankFileQueueTest, FilesOfAnEvaluationAreCountedBesideThoseOfThePassThatItInterrupts) {
  LocalCluster cluster(1);
  RankCalls calls(cluster.rank(0));
  RankFileQueue files(calls, calls.communicator().size());
  const std::unique_ptr<FileQueue> pass = files.OfPass(0, SIZE_MAX);
  EXPECT_EQ(pass->Next(FileTurn::kLater, {}).value(), 0U);
  for (int64_t evaluation = 0; evaluation < 2; ++evaluation) {
    const std::unique_ptr<FileQueue> measured = files.OfEvaluation(evaluation, kFiles);
    EXPECT_EQ(measured->Next(FileTurn::kLater, {}).value(), 0U);
    EXPECT_EQ(measured->Next(FileTurn::kLater, {}).value(), 1U);
  }
  EXPECT_EQ(pass->Next(FileTurn::kLater, {}).value(), 1U);
}

/// What threads of ranks get whose first files they ask for, rank after rank, `threads` at once.
std::vector<std::vector<size_t>> FirstFiles(int ranks, int trainers, int threads, size_t count) {
  LocalCluster cluster(ranks);
  std::vector<std::vector<size_t>> got;
  std::vector<std::unique_ptr<RankCalls>> calls;
  std::vector<std::unique_ptr<RankFileQueue>> files;
  for (int r = 0; r < ranks; ++r) {
    calls.push_back(std::make_unique<RankCalls>(cluster.rank(r)));
    files.push_back(std::make_unique<RankFileQueue>(*calls.back(), trainers));
  }
  for (int r = 0; r < trainers; ++r) {
    const std::unique_ptr<FileQueue> queue = files[static_cast<size_t>(r)]->OfPass(0, count);
    std::vector<size_t>& of_rank = got.emplace_back();
    for (int thread = 0; thread < threads; ++thread) {
      const size_t file = queue->Next(FileTurn::kFirst, {}).value();
      if (file < count) of_rank.push_back(file);
    }
  }
  while (!files.empty()) {
    files.pop_back();
    calls.pop_back();
  }
  return got;
}

TEST(RankFileQueueTest, ARankWithManyThreadsLeavesOthersTheirShare) {
  using Files = std::vector<std::vector<size_t>>;
  EXPECT_EQ(FirstFiles(4, 4, 2, 4), (Files{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(FirstFiles(2, 2, 16, 5), (Files{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(FirstFiles(3, 3, 2, 2), (Files{{0}, {1}, {}}));
  EXPECT_EQ(FirstFiles(3, 2, 4, 4), (Files{{0, 1}, {2, 3}}));  // the third rank serves
  EXPECT_EQ(FirstFiles(2, 2, 2, 9), (Files{{0, 1}, {2, 3}}));
}

TEST(RankFileQueueTest, AThreadThatIsDoneTakesWhatIsLeftOfTheShareOfOthers) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankFileQueue files(calls, 2);
  const std::unique_ptr<FileQueue> queue = files.OfPass(0, 4);
  EXPECT_EQ(queue->Next(FileTurn::kFirst, {}).value(), 0U);
  EXPECT_EQ(queue->Next(FileTurn::kFirst, {}).value(), 1U);
  EXPECT_EQ(queue->Next(FileTurn::kFirst, {}).value(), 4U);
  EXPECT_EQ(queue->Next(FileTurn::kLater, {}).value(), 2U);
  EXPECT_EQ(queue->Next(FileTurn::kLater, {}).value(), 3U);
  EXPECT_EQ(queue->Next(FileTurn::kLater, {}).value(), 4U);
}

TEST(RankFileQueueTest, AStopRequestEndsTheWaitForARankThatDoesNotAnswer) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(1));
  RankFileQueue files(calls, calls.communicator().size());
  std::stop_source stop;
  std::jthread reader([&] {
    const Status status = files.OfPass(0, SIZE_MAX)->Next(FileTurn::kLater, stop.get_token()).status();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.ToString();
  });
  stop.request_stop();
}

TEST(RankFileQueueTest, ALostRankFailsWithItsName) {
  LocalCluster cluster(3);
  RankCalls calls(cluster.rank(1));
  RankFileQueue files(calls, calls.communicator().size());
  cluster.Lose(2);
  const Status status = files.OfPass(0, SIZE_MAX)->Next(FileTurn::kLater, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), testing::AllOf(testing::HasSubstr("the next file"), testing::HasSubstr("rank 2")));
}

TEST(RankFileQueueTest, ARankThatIsLostInASimulationEndsAllOthers) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedCluster cluster({.size = 3,
                              .seed = seed,
                              .losses = {{.rank = static_cast<int>(seed % 3), .at = 40 + static_cast<int64_t>(seed)}}});
    std::vector<Status> ended(3);
    const Status ran = cluster.Run([&](Communicator& communicator) {
      RankCalls calls(communicator);
      RankFileQueue files(calls, calls.communicator().size());
      Status& status = ended[static_cast<size_t>(communicator.rank())];
      status = communicator.Barrier();
      const std::unique_ptr<FileQueue> queue = files.OfPass(0, SIZE_MAX);
      // Without an end: only the loss ends a rank that asks. Rank 0 counts for itself, and sees the loss in what
      // follows.
      for (int i = 0; i < 1000 && status.ok(); ++i) status = queue->Next(FileTurn::kLater, {}).status();
      if (status.ok()) status = communicator.Barrier();
    });
    EXPECT_TRUE(ran.ok()) << ran.ToString();
    for (const Status& status : ended) EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
  }
}

}  // namespace
}  // namespace millrace
