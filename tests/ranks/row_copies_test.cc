// Ranks that train on copies of each other's rows: what each has learnt reaches the owner, once.

#include "ranks/row_copies.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"
#include "model.pb.h"
#include "ranks/rank_group.h"
#include "ranks/rank_tables.h"
#include "table/virtual_shards.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr size_t kCopiedRows = 60;
constexpr int kPushes = 12;

TableDesc CopiedDesc(const std::string& rule, int dim) {
  TableDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: \"t\" " + rule, &desc));
  desc.set_dim(dim);
  return desc;
}

Result<std::unique_ptr<SparseTable>> MakeCopied(RankTables& ranks, const std::string& rule, int geo_steps,
                                                WireFloat wire = WireFloat::kFloat32, int dim = 2) {
  return RankTableFactory(TableFactory::Builtin(), ranks, {.wire = wire, .geo_steps = geo_steps})
      .Create(CopiedDesc(rule, dim), 5);
}

std::vector<uint64_t> CopiedKeys() {
  std::vector<uint64_t> keys(kCopiedRows);
  std::iota(keys.begin(), keys.end(), 100);
  return keys;
}

std::vector<float> WeightsOf(SparseTable& table) {
  RowBatch rows;
  EXPECT_TRUE(table.Pull(CopiedKeys(), PullMode::kReadOnly, &rows).ok());
  std::vector<float> weights;
  for (const float* row : rows.weights()) weights.insert(weights.end(), row, row + table.shape().dim);
  return weights;
}

Status PushToCopies(SparseTable& table, std::span<const uint64_t> keys, float gradient, float lr = 1) {
  RowBatch rows;
  MR_TRY(table.Pull(keys, PullMode::kInsert, &rows));
  const std::vector<float> gradients(static_cast<size_t>(table.shape().dim) * keys.size(), gradient);
  return table.Push(rows, gradients, {.lr = lr});
}

/// What a rank does: pushes the same to all rows, again and again. Afterwards `weights` has what this rank sees.
Status TrainCopies(Communicator& communicator, const std::string& rule, int geo_steps, WireFloat wire,
                   std::vector<float>* weights) {
  RankCalls calls(communicator);
  RankTables ranks(calls);
  MR_ASSIGN(const std::unique_ptr<SparseTable> table, MakeCopied(ranks, rule, geo_steps, wire));
  MR_TRY(communicator.Barrier());
  for (int i = 0; i < kPushes; ++i) MR_TRY(PushToCopies(*table, CopiedKeys(), 0.125F));
  MR_TRY(communicator.Barrier());
  MR_TRY(ranks.Flush());
  MR_TRY(communicator.Barrier());
  *weights = WeightsOf(*table);
  return communicator.Barrier();
}

class RowCopiesTest : public testing::TestWithParam<WireFloat> {};

TEST_P(RowCopiesTest, WhatTwoRanksLearnIsAddedUpWhateverTheNetworkDelays) {
  // All steps are eighths, which 16 bits hold exactly, and rows start from zero.
  const std::string rule = "init { constant: 0 } optimizer { sgd { lr: 1 } }";
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::vector<float>> weights(2);
    SimulatedCluster cluster({.size = 2, .seed = seed, .longest_delay = 40});
    const Status ran = cluster.Run([&](Communicator& rank) {
      const Status trained = TrainCopies(rank, rule, 1 + static_cast<int>(seed % 5), GetParam(),
                                         &weights[static_cast<size_t>(rank.rank())]);
      EXPECT_TRUE(trained.ok()) << trained.ToString();
    });
    ASSERT_TRUE(ran.ok()) << ran.ToString();
    const std::vector<float> expected(2 * kCopiedRows, -2 * kPushes * 0.125F);
    EXPECT_EQ(weights[0], expected);
    EXPECT_EQ(weights[1], expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, RowCopiesTest, testing::Values(WireFloat::kFloat32, WireFloat::kBFloat16),
                         [](const auto& wire) { return wire.param == WireFloat::kFloat32 ? "Fp32" : "Bf16"; });

/// How far a row of adagrad is from where it began, behind so many equal gradients.
float MovedByAdagrad(int steps) {
  float moved = 0;
  for (int i = 1; i <= steps; ++i) moved += 1 / std::sqrt(static_cast<float>(i));
  return moved;
}

TEST(RowCopies, WhatRanksLearnOfARowAtOnceMovesItNoFurtherThanOneAfterTheOther) {
  const std::string rule = "init { constant: 0 } optimizer { adagrad { lr: 1 } }";
  constexpr int kAll = 8;
  std::vector<std::vector<float>> weights(kAll);
  SimulatedCluster cluster({.size = kAll, .seed = 3, .longest_delay = 40});
  const Status ran = cluster.Run([&](Communicator& communicator) {
    RankCalls calls(communicator);
    RankTables ranks(calls);
    const Result<std::unique_ptr<SparseTable>> table = MakeCopied(ranks, rule, 1000);
    ASSERT_TRUE(table.ok());
    ASSERT_TRUE(communicator.Barrier().ok());
    // A row that all train once, and others that one alone does, more often.
    const std::vector<uint64_t> keys = CopiedKeys();
    ASSERT_TRUE(PushToCopies(**table, {keys.data(), 1}, 1).ok());
    const auto own = static_cast<size_t>(communicator.rank());
    for (int i = 0; i < kPushes; ++i) ASSERT_TRUE(PushToCopies(**table, {keys.data() + 1 + own, 1}, 1).ok());
    ASSERT_TRUE(ranks.Flush().ok());
    ASSERT_TRUE(communicator.Barrier().ok());
    weights[own] = WeightsOf(**table);
    ASSERT_TRUE(communicator.Barrier().ok());
  });
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  for (int r = 0; r < kAll; ++r) {
    EXPECT_EQ(weights[static_cast<size_t>(r)], weights[0]);
    EXPECT_NEAR(weights[0][2 * (1 + static_cast<size_t>(r))], -MovedByAdagrad(kPushes), 1e-4);
  }
  // Eight steps, each the first of its rank.
  EXPECT_GT(weights[0][0], -MovedByAdagrad(kAll));
  EXPECT_LT(weights[0][0], -MovedByAdagrad(2));
}

TEST(RowCopies, RowsThatAllRanksUseInEachBatchMoveAsFarAsWithTwo) {
  const std::string rule = "init { constant: 0 } optimizer { sgd { lr: 1 } }";
  std::vector<std::vector<float>> weights(6);
  OnRanks(6, [&](Communicator& communicator) {
    // What comes from others while an owner updates its rows may cost it an update, as between Hogwild workers.
    const Status trained = TrainCopies(communicator, rule, 2 * kPushes, WireFloat::kFloat32,
                                       &weights[static_cast<size_t>(communicator.rank())]);
    EXPECT_TRUE(trained.ok()) << trained.ToString();
  });
  // An owner moves its own rows the whole way, and the five others theirs by a third.
  for (const float weight : weights[0]) EXPECT_NEAR(weight, -kPushes * 0.125F * (1 + 5.0F / 3), 1e-4);
  EXPECT_EQ(weights[5], weights[0]);
}

/// Runs `rank(communicator, ranks, table)` on two ranks.
template <class Rank>
void OnTwoRanksWithCopies(const std::string& rule, int geo_steps, const Rank& rank, int dim = 2) {
  OnRanks(2, [&](Communicator& communicator) {
    RankCalls calls(communicator);
    RankTables ranks(calls);
    const Result<std::unique_ptr<SparseTable>> table = MakeCopied(ranks, rule, geo_steps, WireFloat::kFloat32, dim);
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    ASSERT_TRUE(communicator.Barrier().ok());
    rank(communicator, ranks, **table);
    ASSERT_TRUE(communicator.Barrier().ok());
  });
}

TEST(RowCopies, OneRankAloneTrainsWhatOneProcessTrains) {
  for (const std::string rule : {"init { uniform: 0.1 } optimizer { sgd { lr: 0.1 } }",
                                 "init { uniform: 0.1 } optimizer { adagrad { lr: 0.1 } }",
                                 "init { uniform: 0.1 } optimizer { ftrl { alpha: 0.1 l1: 0.2 beta: 1 } }"}) {
    SCOPED_TRACE(rule);
    LocalCluster one(1);
    RankCalls calls(one.rank(0));
    RankTables alone(calls);
    const std::unique_ptr<SparseTable> expected = MakeCopied(alone, rule, 3).value();
    for (int i = 0; i < kPushes; ++i)
      ASSERT_TRUE(PushToCopies(*expected, CopiedKeys(), 0.1F + 0.01F * static_cast<float>(i), 0.1F).ok());
    OnTwoRanksWithCopies(rule, 3, [&](Communicator& communicator, RankTables& ranks, SparseTable& table) {
      for (int i = 0; communicator.rank() == 0 && i < kPushes; ++i) {
        ASSERT_TRUE(PushToCopies(table, CopiedKeys(), 0.1F + 0.01F * static_cast<float>(i), 0.1F).ok());
      }
      ASSERT_TRUE(ranks.Flush().ok());
      ASSERT_TRUE(communicator.Barrier().ok());
      const std::vector<float> weights = WeightsOf(table);
      const std::vector<float> wanted = WeightsOf(*expected);
      for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], wanted[i], 2e-6) << i;
    });
  }
}

TEST(RowCopies, ThePullBehindAnExchangeOfAllSeesWhatOthersLearnt) {
  OnTwoRanksWithCopies("init { constant: 0 } optimizer { sgd { lr: 1 } }", 1000,
                       [](Communicator& communicator, RankTables& ranks, SparseTable& table) {
                         for (int turn = 0; turn < 6; ++turn) {
                           if (turn % 2 == communicator.rank()) {
                             RowBatch rows;
                             ASSERT_TRUE(table.Pull(CopiedKeys(), PullMode::kInsert, &rows).ok());
                             for (const float* row : rows.weights()) ASSERT_EQ(row[0], -static_cast<float>(turn));
                             ASSERT_TRUE(PushToCopies(table, CopiedKeys(), 1).ok());
                           }
                           ASSERT_TRUE(ranks.Flush().ok());
                           ASSERT_TRUE(communicator.Barrier().ok());
                         }
                       });
}

TEST(RowCopies, ANewRowOfFtrlKeepsItsFirstWeights) {
  const std::string rule = "init { uniform: 0.1 } optimizer { ftrl { alpha: 0.1 l1: 0.2 beta: 1 } }";
  OnTwoRanksWithCopies(rule, 3, [](Communicator&, RankTables& ranks, SparseTable& table) {
    const std::vector<float> first = WeightsOf(table);
    const std::vector<uint64_t> others = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(PushToCopies(table, others, 0.1F, 0.1F).ok());
    RowBatch rows;
    ASSERT_TRUE(table.Pull(CopiedKeys(), PullMode::kInsert, &rows).ok());
    for (size_t i = 0; i < kCopiedRows; ++i) EXPECT_EQ(rows.weights()[i][0], first[2 * i]) << i;
    ASSERT_TRUE(ranks.Flush().ok());
  });
}

TEST(RowCopies, WhatWasFetchedBeforeAnExchangeOfAllIsReadAgain) {
  OnTwoRanksWithCopies("init { constant: 0 } optimizer { sgd { lr: 1 } }", 1000,
                       [](Communicator& communicator, RankTables& ranks, SparseTable& table) {
                         if (communicator.rank() == 0) {
                           ASSERT_TRUE(dynamic_cast<Prefetchable&>(table).Fetch(CopiedKeys()).ok());
                         }
                         ASSERT_TRUE(ranks.Flush().ok());
                         ASSERT_TRUE(communicator.Barrier().ok());
                         if (communicator.rank() == 1) {
                           ASSERT_TRUE(PushToCopies(table, CopiedKeys(), 1).ok());
                         }
                         ASSERT_TRUE(ranks.Flush().ok());
                         ASSERT_TRUE(communicator.Barrier().ok());
                         RowBatch rows;
                         ASSERT_TRUE(table.Pull(CopiedKeys(), PullMode::kInsert, &rows).ok());
                         for (const float* row : rows.weights()) EXPECT_EQ(row[0], -1);
                       });
}

TEST(RowCopies, OwnersDoNotChangeUnderATable) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankTables ranks(calls);
  {
    const std::unique_ptr<SparseTable> table = MakeCopied(ranks, "optimizer { sgd { lr: 0.1 } }", 2).value();
    EXPECT_TRUE(ranks.SetServers(0).ok());
    EXPECT_THAT(ranks.SetServers(1).message(), HasSubstr("dist.servers: table \"t\" has its rows where 0 ranks serve"));
    EXPECT_EQ(ranks.trainers(), 2);
  }
  ASSERT_TRUE(ranks.SetServers(1).ok());
  EXPECT_EQ(ranks.trainers(), 1);
  EXPECT_EQ(ranks.ShardsOf(0).size(), 0);
  EXPECT_EQ(ranks.ShardsOf(1), kAllShards);
}

TEST(RowCopies, ARowThatIsUsedAgainIsNotAskedForAgain) {
  OnTwoRanksWithCopies("init { uniform: 0.1 } optimizer { adagrad { lr: 0.1 } }", 1000,
                       [](Communicator& communicator, RankTables& ranks, SparseTable& table) {
                         ASSERT_TRUE(PushToCopies(table, CopiedKeys(), 0.1F).ok());
                         const int64_t before = communicator.bytes_sent();
                         for (int i = 0; i < 20; ++i) ASSERT_TRUE(PushToCopies(table, CopiedKeys(), 0.1F).ok());
                         // What the other rank asks first is answered at any time: a key, and a row back.
                         EXPECT_LE(communicator.bytes_sent() - before,
                                   static_cast<int64_t>(kCopiedRows * 4 * sizeof(float) + 200));
                         EXPECT_GT(ranks.pulls().first, 19);
                       });
}

TEST(RowCopies, EveryExchangeIsCountedWhereItIsAppliedToo) {
  std::vector<RankPushes> pushes(2);
  OnTwoRanksWithCopies("init { uniform: 0.1 } optimizer { sgd { lr: 0.1 } }", 4,
                       [&](Communicator& communicator, RankTables& ranks, SparseTable& table) {
                         for (int i = 0; i < kPushes; ++i) ASSERT_TRUE(PushToCopies(table, CopiedKeys(), 0.1F).ok());
                         ASSERT_TRUE(ranks.Flush().ok());
                         ASSERT_TRUE(communicator.Barrier().ok());
                         pushes[static_cast<size_t>(communicator.rank())] = ranks.pushes();
                       });
  // Twelve to the own part, three exchanges, and nothing is left for the last one.
  EXPECT_EQ(pushes[0].sent, kPushes + kPushes / 4);
  EXPECT_EQ(pushes[0].sent + pushes[1].sent, pushes[0].applied + pushes[1].applied);
}

TEST(RowCopies, SeveralWorkersOfTheSameRowsLoseNoUpdate) {
  // Wide rows, so that two threads are at one often.
  constexpr int kWide = 1000;
  constexpr int kTimes = 100;
  OnTwoRanksWithCopies(
      "init { constant: 0 } optimizer { sgd { lr: 1 } }", 7,
      [](Communicator& communicator, RankTables& ranks, SparseTable& table) {
        std::vector<uint64_t> keys = CopiedKeys();
        // The owner's own workers may lose parts of each other's updates, as Hogwild workers do.
        std::erase_if(keys, [&](uint64_t key) { return ranks.OwnerOf(VirtualShardOf(key)) == communicator.rank(); });
        {
          std::vector<std::jthread> workers;
          for (int w = 0; w < 3; ++w) {
            workers.emplace_back([&] {
              for (int i = 0; i < kTimes; ++i) ASSERT_TRUE(PushToCopies(table, keys, 0.5F).ok());
            });
          }
        }
        ASSERT_TRUE(ranks.Flush().ok());
        ASSERT_TRUE(communicator.Barrier().ok());
        for (const float weight : WeightsOf(table)) EXPECT_EQ(weight, -0.5F * 3 * kTimes);
      },
      kWide);
}

TEST(RowCopies, RulesWhoseStateIsNoSumAreRefusedByName) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankTables ranks(calls);
  const Status adam =
      MakeCopied(ranks, "init { uniform: 0.1 } optimizer { adam { lr: 0.1 lazy_mode: true } }", 4).status();
  EXPECT_EQ(adam.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(adam.message(), HasSubstr("dist.update: GEO: table \"t\": what ranks learn apart adds up with sgd, "
                                        "adagrad and ftrl, and not with \"adam"));
  TableDesc counted;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("name: \"c\" accessor { embedx_dim: 3 }", &counted));
  const Status refused = RankTableFactory(TableFactory::Builtin(), ranks, {.geo_steps = 4}).Create(counted, 5).status();
  EXPECT_THAT(refused.message(), HasSubstr("table \"c\": its rows count shows and clicks"));
}

TEST(RowCopies, ALostOwnerEndsTraining) {
  LocalCluster cluster(2);
  RankCalls other_calls(cluster.rank(1));
  RankTables other(other_calls);
  RankCalls calls(cluster.rank(0));
  RankTables ranks(calls);
  const std::unique_ptr<SparseTable> table =
      MakeCopied(ranks, "init { uniform: 0.1 } optimizer { sgd { lr: 0.1 } }", 2).value();
  std::jthread loser([&] { cluster.Lose(1); });
  Status last;
  for (int i = 0; last.ok(); ++i) {
    ASSERT_LT(i, 1'000'000);
    last = PushToCopies(*table, CopiedKeys(), 0.1F);
  }
  EXPECT_TRUE(last.code() == StatusCode::kUnavailable || last.code() == StatusCode::kNotFound) << last.ToString();
}

}  // namespace
}  // namespace millrace
