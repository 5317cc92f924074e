// A table whose rows count shows and clicks, of which each rank has a part, is that of one process.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <thread>

#include "comm/local_cluster.h"
#include "comm/on_ranks.h"
#include "comm/simulated_cluster.h"
#include "core/hash.h"
#include "model.pb.h"
#include "ranks/rank_tables.h"
#include "ranks/row_wire.h"
#include "table/counted_table.h"
#include "table/ctr_rows.h"
#include "table/hash_table.h"

namespace millrace {
namespace {

using testing::HasSubstr;

constexpr uint64_t kStart = 5;
constexpr uint64_t kRounds = 12;

TableDesc CountedDesc() {
  TableDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(name: "t" initial_rows: 64 accessor { embedx_dim: 3 embedx_threshold: 1
           ctr_accessor_param { delete_threshold: 0.5 base_threshold: 0.8 delta_threshold: 0.3 }
           embedx_sgd_param { name: "SparseAdamSGDRule" } })",
      &desc));
  return desc;
}

/// What is pushed in a round: keys that ascend, each with shows, clicks and gradients.
struct Batch {
  std::vector<uint64_t> keys;
  std::vector<float> values;
};

Batch BatchOf(uint64_t round) {
  Batch batch;
  for (uint64_t key = HashedNumber(round, 0) % 3; key < 200; key += 1 + HashedNumber(round, key) % 4) {
    const uint64_t shows = 1 + key % 3;
    batch.keys.push_back(key * 7919);
    const float click = HashedNumber(key, round) % 4 == 0 ? 1 : 0;
    batch.values.insert(batch.values.end(), {static_cast<float>(shows), click});
    for (uint64_t d = 0; d < 4; ++d) batch.values.push_back(static_cast<float>(HashedNumber(key, d) % 100) * 0.01F);
  }
  return batch;
}

void PushBatch(SparseTable& table, const Batch& batch, int examples) {
  RowBatch rows;
  ASSERT_TRUE(table.Pull(batch.keys, PullMode::kInsert, &rows).ok());
  const Status pushed = table.Push(rows, batch.values, {.examples = examples});
  ASSERT_TRUE(pushed.ok()) << pushed.ToString();
}

std::string SavedOf(const SparseTable& table, TableContent content = TableContent::kAll) {
  std::ostringstream out;
  EXPECT_TRUE(table.Save(kAllShards, content, out).ok());
  return std::move(out).str();
}

/// A day: what a table saves of it, and what is left.
struct Day {
  std::vector<std::string> saved;
  CountedRows counted;
  ShrinkReport shrunk;

  friend bool operator==(const Day& a, const Day& b) {
    return a.saved == b.saved && a.counted.shows == b.counted.shows && a.counted.clicks == b.counted.clicks &&
           a.counted.rows == b.counted.rows && a.counted.with_embedx == b.counted.with_embedx &&
           a.shrunk.rows == b.shrunk.rows && a.shrunk.deleted == b.shrunk.deleted;
  }
};

Day EndDay(SparseTable& table) {
  CountedTable* const counted = AsCounted(&table);
  Day day;
  day.counted = counted->Count().value();
  for (int i = 0; i < 2; ++i) {
    day.saved.push_back(SavedOf(table, TableContent::kDelta));
    EXPECT_TRUE(counted->WasSaved(TableContent::kDelta).ok());
  }
  day.saved.push_back(SavedOf(table, TableContent::kBase));
  day.shrunk = counted->Shrink(2).value();
  day.saved.push_back(SavedOf(table));
  return day;
}

std::vector<Day> DaysOfOneProcess() {
  const std::unique_ptr<SparseTable> table = CreateHashTable(CountedDesc(), kStart).value();
  std::vector<Day> days;
  for (uint64_t round = 0; round < kRounds; ++round) {
    PushBatch(*table, BatchOf(round), static_cast<int>(round + 1));
    if (round % 4 == 3) days.push_back(EndDay(*table));
  }
  return days;
}

/// What every rank does: they push in turns, and the first one ends the days.
void TrainDays(Communicator& communicator, const std::vector<Day>& expected) {
  RankCalls calls(communicator);
  RankTables ranks(calls);
  const std::unique_ptr<SparseTable> table =
      RankTableFactory(TableFactory::Builtin(), ranks).Create(CountedDesc(), kStart).value();
  ASSERT_TRUE(communicator.Barrier().ok());
  for (uint64_t round = 0; round < kRounds; ++round) {
    const auto turn = static_cast<int>(round % static_cast<uint64_t>(communicator.size()));
    if (turn == communicator.rank()) PushBatch(*table, BatchOf(round), static_cast<int>(round + 1));
    ASSERT_TRUE(ranks.Flush().ok());
    ASSERT_TRUE(communicator.Barrier().ok());
    if (round % 4 != 3) continue;
    if (communicator.rank() == 0) {
      EXPECT_TRUE(EndDay(*table) == expected[round / 4]) << "day " << round / 4;
    }
    ASSERT_TRUE(communicator.Barrier().ok());
  }
}

class CountedRankTableTest : public testing::TestWithParam<int> {};

TEST_P(CountedRankTableTest, DaysEndAsInOneProcess) {
  const std::vector<Day> expected = DaysOfOneProcess();
  ASSERT_GT(expected[0].shrunk.deleted, 0);
  ASSERT_GT(expected[0].counted.with_embedx, 0);
  ASSERT_LT(expected[0].counted.with_embedx, expected[0].counted.rows);
  ASSERT_LT(expected[1].saved[1].size(), expected[1].saved[0].size());
  ASSERT_LT(expected[1].saved[0].size(), expected[1].saved[2].size());
  OnRanks(GetParam(), [&](Communicator& communicator) { TrainDays(communicator, expected); });
}

TEST_P(CountedRankTableTest, DaysEndTheSameWhateverTheNetworkDelays) {
  const std::vector<Day> expected = DaysOfOneProcess();
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedCluster cluster({.size = GetParam(), .seed = seed});
    const Status ran = cluster.Run([&](Communicator& communicator) { TrainDays(communicator, expected); });
    EXPECT_TRUE(ran.ok()) << ran.ToString();
  }
}

// Pushes of all ranks, of several threads each, meet at the owners: none loses counts of another.
TEST_P(CountedRankTableTest, NoCountIsLostWhereAllPushAtOnce) {
  constexpr int kThreads = 2;
  std::map<uint64_t, std::pair<float, float>> expected;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const Batch batch = BatchOf(round);
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      expected[batch.keys[i]].first += batch.values[6 * i] * static_cast<float>(kThreads * GetParam());
      expected[batch.keys[i]].second += batch.values[6 * i + 1] * static_cast<float>(kThreads * GetParam());
    }
  }
  OnRanks(GetParam(), [&](Communicator& communicator) {
    RankCalls calls(communicator);
    RankTables ranks(calls);
    const RankTableOptions options{.wire = WireFloat::kBFloat16};
    const std::unique_ptr<SparseTable> table =
        RankTableFactory(TableFactory::Builtin(), ranks, options).Create(CountedDesc(), kStart).value();
    ASSERT_TRUE(communicator.Barrier().ok());
    {
      std::vector<std::jthread> workers;
      for (int w = 0; w < kThreads; ++w) {
        workers.emplace_back([&table] {
          for (uint64_t round = 0; round < kRounds; ++round) PushBatch(*table, BatchOf(round), 1);
        });
      }
    }
    ASSERT_TRUE(ranks.Flush().ok());
    ASSERT_TRUE(communicator.Barrier().ok());
    for (const auto& [key, counts] : expected) {
      RowBatch rows;
      ASSERT_TRUE(table->Pull(std::vector<uint64_t>{key}, PullMode::kReadOnly, &rows).ok());
      EXPECT_EQ(rows.weights()[0][CtrRows::kShow], counts.first) << "key " << key;
      EXPECT_EQ(rows.weights()[0][CtrRows::kClick], counts.second) << "key " << key;
    }
    ASSERT_TRUE(communicator.Barrier().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CountedRankTableTest, testing::Values(1, 2, 3, 5), testing::PrintToStringParamName());

TEST(CountedRankTableTest, WhatAnotherRankCannotPushIsTold) {
  LocalCluster cluster(2);
  RankCalls calls(cluster.rank(0));
  RankTables first(calls);
  RankCalls other_calls(cluster.rank(1));
  RankTables second(other_calls);
  const TableFactory factory = RankTableFactory(TableFactory::Builtin(), first);
  const TableFactory other_factory = RankTableFactory(TableFactory::Builtin(), second);
  const std::unique_ptr<SparseTable> one = factory.Create(CountedDesc(), kStart).value();
  const std::unique_ptr<SparseTable> other = other_factory.Create(CountedDesc(), kStart).value();
  uint64_t theirs = 1;
  while (first.OwnerOf(VirtualShardOf(theirs)) == 0) ++theirs;
  RowBatch rows;
  ASSERT_TRUE(one->Pull(std::vector<uint64_t>{theirs}, PullMode::kInsert, &rows).ok());
  ASSERT_TRUE(one->Push(rows, std::vector<float>(6, 0), {}).ok());
  const Status pushed = first.Flush();
  EXPECT_EQ(pushed.code(), StatusCode::kBadData);
  EXPECT_THAT(pushed.message(), HasSubstr("rank 1: table \"t\": the examples of a row have 0"));
}

TEST(RowWire, CountsAreNeverRounded) {
  const TableShape counted{"t", 4, 4, true};
  const TableShape plain{"t", 4, 4, false};
  const std::vector<float> rows = {1001, 16777215, 0.1F, 0.5F, 3, 257, 1.001F, -2};
  for (const TableShape& shape : {counted, plain}) {
    for (const WireFloat wire : {WireFloat::kFloat32, WireFloat::kBFloat16}) {
      std::string bytes;
      WireWriter out(&bytes);
      PutRows(rows, shape, wire, &out);
      WireReader in(bytes);
      std::vector<float> read;
      GetRows(&in, shape, wire, &read);
      ASSERT_TRUE(in.ok());
      ASSERT_EQ(read.size(), rows.size());
      WireReader by_row(std::string_view(bytes).substr(sizeof(uint64_t)));
      for (size_t at = 0; at < read.size(); at += 4) {
        std::vector<float> row(4);
        GetRow(&by_row, shape, wire, row.data());
        EXPECT_TRUE(std::equal(row.begin(), row.end(), read.begin() + static_cast<ptrdiff_t>(at)));
      }
      for (size_t i = 0; i < rows.size(); ++i) {
        const bool is_whole = wire == WireFloat::kFloat32 || (shape.counts && i % 4 < 2);
        EXPECT_EQ(read[i], is_whole ? rows[i] : FromBFloat16(ToBFloat16(rows[i]))) << "float " << i;
      }
      EXPECT_TRUE(by_row.ok() && by_row.rest().empty());
      for (size_t cut = 0; cut < bytes.size(); ++cut) {
        WireReader some(std::string_view(bytes).substr(0, cut));
        GetRows(&some, shape, wire, &read);
        EXPECT_FALSE(some.ok()) << cut << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace millrace
