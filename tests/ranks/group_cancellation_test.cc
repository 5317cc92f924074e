// What all ranks do at once, and one of them gives up.

#include "ranks/group_cancellation.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"
#include "ranks/rank_file_queue.h"
#include "ranks/rank_group.h"

namespace millrace {
namespace {

constexpr size_t kFilesOfAThing = 12;
constexpr int kThings = 5;

/// Reads the files of some things, as ranks share them. In each odd one a rank gives up at its second file, and nobody
/// would ever come to the end.
Status ReadAll(Communicator& communicator, std::vector<size_t>* read) {
  RankGroup group(communicator);
  RankFileQueue files(group.calls(), group.size());
  MR_TRY(communicator.Barrier());
  for (int thing = 0; thing < kThings; ++thing) {
    const bool is_endless = thing % 2 == 1;
    const std::stop_token end = group.cancellation().Begin();
    const std::unique_ptr<FileQueue> queue = files.OfEvaluation(thing, is_endless ? SIZE_MAX : kFilesOfAThing);
    size_t count = 0;
    while (!end.stop_requested()) {
      const Result<size_t> file = queue->Next(FileTurn::kLater, end);
      if (file.status().code() == StatusCode::kCancelled) break;
      MR_TRY(file.status());
      if (!is_endless && *file >= kFilesOfAThing) break;
      ++count;
      group.calls().Wake();  // lets others go on in a simulation, as rank 0 counts for itself
      if (is_endless && count == 2 && group.rank() == thing % group.size()) group.cancellation().GiveUp();
    }
    if (end.stop_requested() != is_endless) return Internal("thing " + std::to_string(thing) + " ended otherwise");
    read->push_back(count);
    // What is done ends with a collective, which nobody leaves before all have come.
    MR_TRY(communicator.Barrier());
  }
  return Status::Ok();
}

void ExpectWholeThings(const std::vector<std::vector<size_t>>& read) {
  for (int thing = 0; thing < kThings; thing += 2) {
    size_t sum = 0;
    for (const std::vector<size_t>& of_rank : read) {
      ASSERT_EQ(of_rank.size(), static_cast<size_t>(kThings));
      sum += of_rank[static_cast<size_t>(thing)];
    }
    EXPECT_EQ(sum, kFilesOfAThing) << "thing " << thing;
  }
}

TEST(GroupCancellationTest, OneThatGivesUpEndsAllAndNotWhatComesBehind) {
  for (const int ranks : {1, 2, 4}) {
    std::vector<std::vector<size_t>> read(static_cast<size_t>(ranks));
    const std::vector<Status> ended = OnRanks(ranks, [&](Communicator& communicator) {
      return ReadAll(communicator, &read[static_cast<size_t>(communicator.rank())]);
    });
    for (const Status& status : ended) ASSERT_TRUE(status.ok()) << status.ToString();
    ExpectWholeThings(read);
  }
}

TEST(GroupCancellationTest, WhateverTheNetworkDelays) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const int ranks = 2 + static_cast<int>(seed % 4);
    SimulatedCluster cluster({.size = ranks, .seed = seed, .longest_delay = static_cast<int64_t>(seed % 60)});
    std::vector<std::vector<size_t>> read(static_cast<size_t>(ranks));
    std::vector<Status> ended(static_cast<size_t>(ranks));
    const Status ran = cluster.Run([&](Communicator& communicator) {
      const auto at = static_cast<size_t>(communicator.rank());
      ended[at] = ReadAll(communicator, &read[at]);
    });
    ASSERT_TRUE(ran.ok()) << ran.ToString();
    for (const Status& status : ended) ASSERT_TRUE(status.ok()) << status.ToString();
    ExpectWholeThings(read);
  }
}

TEST(GroupCancellationTest, WhoComesLateFindsThatItIsOver) {
  LocalCluster cluster(2);
  RankGroup first(cluster.rank(0));
  RankGroup second(cluster.rank(1));
  first.cancellation().Begin();
  first.cancellation().GiveUp();
  first.cancellation().GiveUp();
  // What was asked behind it is answered, so it has come.
  std::vector<std::string> answers;
  const Status asked = first.calls().Ask(RankService::kFiles, {std::nullopt, ""}, &answers);
  EXPECT_EQ(asked.code(), StatusCode::kNotFound) << asked.ToString();
  EXPECT_TRUE(second.cancellation().Begin().stop_requested());
  EXPECT_FALSE(second.cancellation().Begin().stop_requested());
}

}  // namespace
}  // namespace millrace
