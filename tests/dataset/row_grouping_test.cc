// Page views, shuffled slots, samples and the numbers of an InMemoryDataset.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "core/file.h"
#include "datafeed/batch_text.h"
#include "dataset/in_memory_dataset.h"

namespace millrace {
namespace {

constexpr int kViews = 40;

class RowGroupingTest : public ::testing::Test {
 protected:
  RowGroupingTest() : desc_(testing::DescOf("a:uint64 b:uint64 x:float d:float[2]")), file_(dir_.path() + "/part-0") {
    desc_.set_parse_logkey(true);
    desc_.set_batch_size(8);
    desc_.set_pv_batch_size(3);
    std::ofstream out(file_);
    // Row i of page view v: views of 1 to 4 rows, interleaved.
    for (int i = 0; i < 4; ++i) {
      for (int v = 0; v < kViews; ++v) {
        if (i > v % 4) continue;
        char key[40];
        std::snprintf(key, sizeof(key), "%016x%016x", i, v);
        const int n = ++rows_;
        out << "1 " << key << " 1 " << n << " 2 " << n << " " << n + 1000 << " 1 " << n << ".5 2 " << n << " " << -n
            << "\n";
      }
    }
  }

  std::unique_ptr<InMemoryDataset> Load(const InMemoryDatasetOptions& options = {}) {
    auto dataset = InMemoryDataset::Create(desc_, {file_}, options).value();
    EXPECT_TRUE(dataset->LoadIntoMemory({}).ok());
    return dataset;
  }
  static InMemoryDatasetOptions Join() {
    InMemoryDatasetOptions options;
    options.rows.enable_pv_merge = true;
    options.rows.phases = {PassPhase::kJoin, PassPhase::kUpdate};
    return options;
  }

  /// Visits the batches of a pass, by turns of its workers.
  template <class Visit>
  static void ForEachBatch(InMemoryDataset& dataset, const PassOptions& pass, Visit visit) {
    ASSERT_TRUE(dataset.BeginPass(pass).ok());
    int at_end = 0;
    for (int turn = 0; at_end < pass.workers; ++turn) {
      const BatchPtr batch = dataset.source(turn % pass.workers).Next({}).value();
      at_end = batch == nullptr ? at_end + 1 : 0;
      if (batch != nullptr) visit(*batch);
    }
    ASSERT_TRUE(dataset.EndPass().ok());
  }
  static std::vector<std::string> Rows(InMemoryDataset& dataset, const PassOptions& pass = {}) {
    std::vector<std::string> rows;
    ForEachBatch(dataset, pass, [&rows](const SlotBatch& batch) {
      for (int i = 0; i < batch.rows(); ++i) rows.push_back(testing::RowText(batch, i));
    });
    return rows;
  }

  TempDir dir_ = TempDir::Create("millrace_grouping_").value();
  DataFeedDesc desc_;
  std::string file_;
  int rows_ = 0;
};

TEST_F(RowGroupingTest, NumbersAreRightBeforeWithinAndAfterPasses) {
  auto dataset = InMemoryDataset::Create(desc_, {file_}, Join()).value();
  EXPECT_EQ(dataset->MemoryDataSize(), 0);
  EXPECT_EQ(dataset->ShuffleDataSize(), 0);
  EXPECT_EQ(dataset->PvDataSize(), 0);
  ASSERT_TRUE(dataset->LoadIntoMemory({}).ok());
  const auto check = [&](const char* when) {
    EXPECT_EQ(dataset->MemoryDataSize(), rows_) << when;
    EXPECT_EQ(dataset->ShuffleDataSize(), rows_) << when;
    EXPECT_EQ(dataset->PvDataSize(), kViews) << when;
  };
  check("loaded");
  ASSERT_TRUE(dataset->LocalShuffle(1).ok());
  check("shuffled");
  ASSERT_TRUE(dataset->BeginPass({}).ok());
  { const BatchPtr batch = dataset->source(0).Next({}).value(); }
  check("within a pass");
  ASSERT_TRUE(dataset->EndPass().ok());
  check("after a pass");
  dataset->ReleaseMemory();
  EXPECT_EQ(dataset->MemoryDataSize() + dataset->ShuffleDataSize() + dataset->PvDataSize(), 0);
}

TEST_F(RowGroupingTest, JoinBatchesHoldWholePageViewsShuffledOrNot) {
  for (const bool shuffles : {false, true}) {
    InMemoryDatasetOptions options = Join();
    options.local_shuffle = shuffles;
    const auto dataset = Load(options);
    std::map<std::string, int> batch_of_view;
    int batches = 0;
    int64_t rows = 0;
    PassOptions pass;
    pass.workers = 2;
    ForEachBatch(*dataset, pass, [&](const SlotBatch& batch) {
      std::set<std::string> views;
      for (const std::string& key : batch.ins_ids()) views.insert(key.substr(16));
      for (const std::string& view : views) EXPECT_TRUE(batch_of_view.insert({view, batches}).second) << "torn apart";
      EXPECT_LE(views.size(), 3U);
      rows += batch.rows();
      ++batches;
    });
    EXPECT_EQ(rows, rows_);
    EXPECT_EQ(batches, (kViews + 2) / 3);
    EXPECT_EQ(batch_of_view.size(), static_cast<size_t>(kViews));
  }
}

TEST_F(RowGroupingTest, PhasesTakeTurns) {
  const auto dataset = Load(Join());
  PassOptions pass;
  const std::vector<std::string> join = Rows(*dataset, pass);
  pass.pass = 1;
  const std::vector<std::string> update = Rows(*dataset, pass);
  EXPECT_NE(join, update);
  EXPECT_EQ(std::multiset<std::string>(join.begin(), join.end()),
            std::multiset<std::string>(update.begin(), update.end()));
  pass.pass = 2;
  EXPECT_EQ(Rows(*dataset, pass), join);
}

TEST_F(RowGroupingTest, AResumedJoinPassHandsOutTheOtherPageViews) {
  InMemoryDatasetOptions options = Join();
  options.local_shuffle = true;
  const auto dataset = Load(options);
  const std::vector<std::string> all = Rows(*dataset);
  // Batches 0 and 2 were trained.
  ConsumedRanges trained;
  std::vector<std::string> rest;
  int number = 0;
  ForEachBatch(*dataset, {}, [&](const SlotBatch& batch) {
    const bool is_trained = number == 0 || number == 2;
    ++number;
    for (const BatchSpan& span : batch.spans()) {
      if (is_trained) trained.Add(span);
    }
    for (int i = 0; !is_trained && i < batch.rows(); ++i) rest.push_back(testing::RowText(batch, i));
  });
  ASSERT_LT(rest.size(), all.size());
  PassOptions pass;
  pass.trained = &trained;
  EXPECT_EQ(Rows(*dataset, pass), rest);
}

TEST_F(RowGroupingTest, ShuffledSlotsAreThoseOfOtherRowsAndAllElseIsUntouched) {
  const auto dataset = Load();
  const auto read = [&dataset] {
    std::vector<std::array<std::string, 4>> rows;
    ForEachBatch(*dataset, {}, [&rows](const SlotBatch& batch) {
      for (int i = 0; i < batch.rows(); ++i) {
        const std::string text = testing::RowText(batch, i);
        const auto value = [&text](const std::string& name) {
          const size_t at = text.find(" " + name + "=");
          return text.substr(at + 1, text.find(' ', at + 1) - at - 1);
        };
        rows.push_back({value("a"), value("b"), value("x"), value("d")});
      }
    });
    return rows;
  };
  const auto own = read();
  ASSERT_TRUE(dataset->SlotsShuffle({"b", "d"}, 5).ok());
  const auto shuffled = read();
  ASSERT_EQ(shuffled.size(), own.size());
  std::map<std::string, std::string> d_of_b;
  std::set<std::string> known;
  for (const auto& row : own) d_of_b[row[1]] = row[3];
  size_t moved = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(shuffled[i][0], own[i][0]);
    EXPECT_EQ(shuffled[i][2], own[i][2]);
    EXPECT_EQ(d_of_b.at(shuffled[i][1]), shuffled[i][3]) << "the slots come from one row";
    moved += shuffled[i][1] != own[i][1];
  }
  EXPECT_GT(moved, own.size() * 9 / 10);
  EXPECT_EQ(read(), shuffled) << "a second pass sees the same";
  ASSERT_TRUE(dataset->SlotsShuffle({"b", "d"}, 6).ok());
  EXPECT_NE(read(), shuffled);
  ASSERT_TRUE(dataset->SlotsShuffle({"b", "d"}, 5).ok());
  EXPECT_EQ(read(), shuffled) << "repeatable";
  ASSERT_TRUE(dataset->SlotsShuffle({}, 0).ok());
  EXPECT_EQ(read(), own);
}

TEST_F(RowGroupingTest, DonorsDoNotDependOnTheOrderAndAreAsManyAsCandidates) {
  const auto dataset = Load();
  ASSERT_TRUE(dataset->SlotsShuffle({"b"}, 5, 4).ok());
  const std::vector<std::string> rows = Rows(*dataset);
  std::set<std::string> donors;
  for (const std::string& row : rows) donors.insert(row.substr(row.find(" b="), row.find(" x=") - row.find(" b=")));
  EXPECT_EQ(donors.size(), 4U);
  ASSERT_TRUE(dataset->LocalShuffle(3).ok());
  const std::vector<std::string> other_order = Rows(*dataset);
  EXPECT_NE(rows, other_order);
  EXPECT_EQ(std::set<std::string>(rows.begin(), rows.end()),
            std::set<std::string>(other_order.begin(), other_order.end()));
}

TEST_F(RowGroupingTest, AnUnknownSlotIsNamedWithTheNearest) {
  const auto dataset = Load();
  EXPECT_EQ(dataset->SlotsShuffle({"b", "dd"}, 1).message(),
            "there is no used slot \"dd\" to shuffle; did you mean \"d\"?");
}

TEST_F(RowGroupingTest, ASampleIsTheSameInEveryLoadAndAnotherWithAnotherSeed) {
  InMemoryDatasetOptions options;
  options.rows.sample_rate = 0.5;
  const std::vector<std::string> sample = Rows(*Load(options));
  EXPECT_GT(sample.size(), 30U);
  EXPECT_LT(sample.size(), 70U);
  options.threads = 3;
  EXPECT_EQ(Rows(*Load(options)), sample);
  options.rows.sample = LineDraw(2, DrawnBy::kName);
  EXPECT_NE(Rows(*Load(options)), sample);
  auto counted = InMemoryDataset::Create(desc_, {file_}, options).value();
  const PassStats stats = counted->LoadIntoMemory({}).value();
  EXPECT_EQ(stats.counters.at("sampled_out") + stats.rows, rows_);
}

TEST_F(RowGroupingTest, ChannelsAndWorkersMayChangeBetweenPasses) {
  const auto dataset = Load();
  const std::vector<std::string> rows = Rows(*dataset);
  const std::multiset<std::string> expected(rows.begin(), rows.end());
  for (const int channels : {1, 3, 7}) {
    ASSERT_TRUE(dataset->DynamicAdjustChannelNum(channels).ok());
    for (const int workers : {1, 4, 2}) {
      PassOptions pass;
      pass.workers = workers;
      const std::vector<std::string> again = Rows(*dataset, pass);
      EXPECT_EQ(std::multiset<std::string>(again.begin(), again.end()), expected) << channels << " " << workers;
    }
  }
  EXPECT_EQ(dataset->DynamicAdjustChannelNum(0).code(), StatusCode::kInvalidConfig);
}

}  // namespace
}  // namespace millrace
