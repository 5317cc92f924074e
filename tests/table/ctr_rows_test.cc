#include "table/ctr_rows.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "allocation_counter.h"
#include "model.pb.h"
#include "paths.h"
#include "rows_in_memory.h"
#include "table/counted_table.h"
#include "table/hash_table.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

TableDesc DescOf(const std::string& text) {
  TableDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &desc)) << text;
  return desc;
}

/// Two floats of embedx, from the first push on.
TableDesc SmallDesc(const std::string& accessor = "") {
  TableDesc desc = DescOf("name: \"t\" initial_rows: 64 accessor { embedx_dim: 2 embedx_threshold: 0 }");
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(accessor, desc.mutable_accessor())) << accessor;
  return desc;
}

std::unique_ptr<SparseTable> MakeCounted(const TableDesc& desc, uint64_t seed = 1) {
  Result<std::unique_ptr<SparseTable>> table = CreateHashTable(desc, seed);
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return table.ok() ? std::move(table).value() : nullptr;
}

std::string WhyNot(const std::string& accessor) {
  const Result<std::unique_ptr<SparseTable>> table =
      CreateHashTable(DescOf("name: \"t\" accessor { " + accessor + " }"), 1);
  return table.ok() ? "" : table.status().message();
}

Status PushTo(SparseTable& table, const std::vector<uint64_t>& keys, const std::vector<float>& values,
              int examples = 1) {
  RowBatch rows;
  MR_TRY(table.Pull(keys, PullMode::kInsert, &rows));
  return table.Push(rows, values, {.examples = examples});
}

/// All floats of a row, or the weights of a key without one.
std::vector<float> RowOf(SparseTable& table, uint64_t key) {
  RowBatch rows;
  EXPECT_TRUE(table.Pull(std::vector<uint64_t>{key}, PullMode::kReadOnly, &rows).ok());
  const int floats = rows.missing().empty() ? table.shape().row_floats : table.shape().dim;
  return {rows.weights()[0], rows.weights()[0] + floats};
}

std::string SavedAs(const SparseTable& table, TableContent content = TableContent::kAll) {
  std::ostringstream out;
  EXPECT_TRUE(table.Save(kAllShards, content, out).ok());
  return out.str();
}

std::vector<float> Floats(std::istringstream& words) {
  return {std::istream_iterator<float>(words), std::istream_iterator<float>()};
}

/// tests/golden/ctr_rows.txt, which scripts/golden/ctr_rows.py computes from the formulas.
TEST(CtrRows, FollowTheFormulas) {
  std::ifstream file(SourceDir() + "/tests/golden/ctr_rows.txt");
  std::unique_ptr<SparseTable> table;
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    SCOPED_TRACE(line.substr(0, 200));
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "table") {
      table = MakeCounted(DescOf(line.substr(what.size())));
    } else if (what == "push") {
      int examples = 0;
      uint64_t key = 0;
      words >> examples >> key;
      ASSERT_TRUE(PushTo(*table, {key}, Floats(words), examples).ok());
    } else if (what == "shrink") {
      int64_t left = 0;
      words >> left;
      const Result<ShrinkReport> shrunk = AsCounted(table.get())->Shrink(2);
      ASSERT_TRUE(shrunk.ok());
      ASSERT_EQ(shrunk->rows, left);
    } else if (what == "row") {
      uint64_t key = 0;
      words >> key;
      std::vector<float> expected = Floats(words);
      std::vector<float> row = RowOf(*table, key);
      ASSERT_EQ(row.size(), expected.size());
      // The file says whether embedx is there; the row what it will start from.
      float& from = row[static_cast<size_t>(table->shape().dim) + 2];
      from = from == 0 ? 1 : 0;
      for (size_t i = 0; i < row.size(); ++i) {
        ASSERT_EQ(row[i], expected[i]) << "float " << i;
      }
      ++rows;
    } else {
      ASSERT_EQ(what, "#");
    }
  }
  EXPECT_GT(rows, 350);
}

TEST(CtrRows, APullShowsZerosAndMakesAnEmptyRow) {
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc("ctr_accessor_param { zero_init: false }"));
  EXPECT_THAT(RowOf(*table, 7), ElementsAre(0, 0, 0, 0, 0));
  RowBatch rows;
  ASSERT_TRUE(table->Pull(std::vector<uint64_t>{7}, PullMode::kInsert, &rows).ok());
  const std::vector<float> made = RowOf(*table, 7);
  EXPECT_EQ(made[CtrRows::kShow], 0);
  EXPECT_NE(made[CtrRows::kEmbed], 0);
  EXPECT_LE(std::abs(made[CtrRows::kEmbed]), 1e-4F);
  EXPECT_EQ(made[CtrRows::kEmbedx], 0);
}

TEST(CtrRows, EmbedxStartsByTheKeyAloneWhenTheScoreIsThere) {
  const std::string accessor = "embedx_threshold: 3 embedx_sgd_param { adagrad { initial_range: 0.5 } }";
  const std::unique_ptr<SparseTable> a = MakeCounted(SmallDesc(accessor));
  const std::unique_ptr<SparseTable> b = MakeCounted(SmallDesc(accessor));
  ASSERT_TRUE(PushTo(*a, {5, 6}, {2, 2, 1, 9, 9, 1, 1, 1, 9, 9}).ok());
  EXPECT_EQ(RowOf(*a, 5)[CtrRows::kEmbedx], 0) << "a score of 2";
  ASSERT_TRUE(PushTo(*a, {5}, {1, 1, 0, 9, 9}).ok());
  const std::vector<float> row = RowOf(*a, 5);
  EXPECT_NE(row[3], 0);
  EXPECT_NE(row[3], row[4]);
  EXPECT_LE(std::abs(row[3]), 0.5F) << "the push that makes it does not train it";
  ASSERT_TRUE(PushTo(*b, {6, 5}, {1, 1, 1, 9, 9, 3, 3, 1, 9, 9}).ok());
  EXPECT_EQ(RowOf(*b, 5)[3], row[3]);
  EXPECT_EQ(RowOf(*b, 5)[4], row[4]);
  const std::unique_ptr<SparseTable> c = MakeCounted(SmallDesc(accessor), 2);
  ASSERT_TRUE(PushTo(*c, {5}, {3, 3, 1, 9, 9}).ok());
  EXPECT_NE(RowOf(*c, 5)[3], row[3]) << "another seed";
}

TEST(CtrRows, GradientsAreThoseOfTheSumOfTheBatch) {
  const std::string naive = "{ name: \"SparseNaiveSGDRule\" naive { learning_rate: 1 initial_range: 0 } }";
  const std::unique_ptr<SparseTable> table =
      MakeCounted(SmallDesc("embed_sgd_param " + naive + " embedx_sgd_param " + naive));
  ASSERT_TRUE(PushTo(*table, {1}, {1, 0, 0.5F, 0, 0}, 8).ok());
  ASSERT_TRUE(PushTo(*table, {1}, {1, 0, 0, 0.25F, 0.5F}, 8).ok());
  const std::vector<float> row = RowOf(*table, 1);
  EXPECT_THAT(std::vector<float>(row.begin(), row.begin() + 5), ElementsAre(2, 0, -4, -2, -4));
}

TEST(CtrRows, APushWithoutAShowIsRefusedWhole) {
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc());
  const Status status = PushTo(*table, {1, 2}, {1, 0, 1, 0, 0, 0, 0, 1, 0, 0});
  EXPECT_EQ(status.code(), StatusCode::kBadData);
  EXPECT_THAT(status.message(), HasSubstr("table \"t\": the examples of a row have 0 shows"));
  EXPECT_EQ(RowOf(*table, 1)[CtrRows::kShow], 0);
  const std::unique_ptr<SparseTable> undivided = MakeCounted(SmallDesc("ctr_accessor_param { show_scale: false }"));
  EXPECT_TRUE(PushTo(*undivided, {2}, {0, 0, 1, 0, 0}).ok());
}

TEST(CtrRows, AWeightThatIsNoNumberStaysOne) {
  const std::unique_ptr<SparseTable> table =
      MakeCounted(SmallDesc("embed_sgd_param { adagrad { weight_bounds: [-10, 10] } }"));
  ASSERT_TRUE(PushTo(*table, {1}, {1, 0, std::numeric_limits<float>::quiet_NaN(), 0, 0}).ok());
  EXPECT_EQ(table->FindNonFinite().rows, 1);
}

void PushRandomly(SparseTable& table, uint32_t seed, int pushes) {
  std::mt19937 random(seed);
  for (int i = 0; i < pushes; ++i) {
    const auto show = static_cast<float>(1 + random() % 4);
    const auto draw = [&random] { return static_cast<float>(random() % 1000) / 1000 - 0.5F; };
    ASSERT_TRUE(
        PushTo(table, {random() % 500}, {show, show * (random() % 3 == 0 ? 1.0F : 0.0F), draw(), draw(), draw()}).ok());
  }
}

TEST(CtrRows, SavesLoadsAndGoesOnToTheSameBytes) {
  const std::string accessor = "embedx_threshold: 4";
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc(accessor));
  PushRandomly(*table, 1, 3000);
  ASSERT_TRUE(AsCounted(table.get())->Shrink(2).ok());
  PushRandomly(*table, 2, 1000);
  const std::string saved = SavedAs(*table);
  const std::unique_ptr<SparseTable> again = MakeCounted(SmallDesc(accessor));
  std::istringstream in(saved);
  ASSERT_TRUE(again->Load(kAllShards, in, LoadMode::kNew).ok());
  EXPECT_EQ(SavedAs(*again), saved);
  for (SparseTable* each : {table.get(), again.get()}) {
    PushRandomly(*each, 3, 1000);
    ASSERT_TRUE(AsCounted(each)->Shrink(1).ok());
  }
  EXPECT_EQ(SavedAs(*again), SavedAs(*table));
  const CountedRows counted = AsCounted(table.get())->Count().value();
  EXPECT_EQ(counted.rows, table->stats().rows);
  EXPECT_GT(counted.with_embedx, 0);
  EXPECT_LT(counted.with_embedx, counted.rows);
}

TEST(CtrRows, ADayThatEndsChangesAllRowsAndASaveForServingThoseThatItHas) {
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc("ctr_accessor_param { base_threshold: 2 }"));
  auto& changes = dynamic_cast<ChangeTracking&>(*table);
  PushRandomly(*table, 1, 3000);
  ASSERT_TRUE(changes.BeginChanges().ok());
  ASSERT_TRUE(AsCounted(table.get())->WasSaved(TableContent::kBase).ok());
  EXPECT_GT(changes.CountChanges()->rows, 0);
  EXPECT_EQ(changes.CountChanges()->since, 3000);
  ASSERT_TRUE(AsCounted(table.get())->Shrink(2).ok());
  EXPECT_EQ(changes.CountChanges()->since, -1) << "rows were deleted, which no list of changed rows says";
  ASSERT_TRUE(changes.BeginChanges().ok());
  PushRandomly(*table, 2, 1);
  EXPECT_GE(changes.CountChanges()->rows, 1);
}

TEST(CtrRows, LoadedWeightsAloneStartAnew) {
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc("embedx_threshold: 2"));
  ASSERT_TRUE(PushTo(*table, {1, 2}, {2, 2, 1, 1, 1, 1, 1, 1, 1, 1}).ok());
  const std::unique_ptr<SparseTable> again = MakeCounted(SmallDesc("embedx_threshold: 2"));
  std::istringstream in(SavedAs(*table, TableContent::kWeights));
  ASSERT_TRUE(again->Load(kAllShards, in, LoadMode::kNew).ok());
  EXPECT_EQ(AsCounted(again.get())->Count()->with_embedx, 1);
  EXPECT_EQ(RowOf(*again, 1)[CtrRows::kShow], 2);
  ASSERT_TRUE(PushTo(*again, {2}, {1, 1, 0, 0, 0}).ok());
  EXPECT_EQ(AsCounted(again.get())->Count()->with_embedx, 2);
}

TEST(CtrRows, AnotherRuleOrWidthDoesNotLoad) {
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc());
  ASSERT_TRUE(PushTo(*table, {1}, {1, 1, 1, 1, 1}).ok());
  for (const char* other : {"embedx_dim: 3", "embedx_sgd_param { name: \"StdAdaGradSGDRule\" }",
                            "embed_sgd_param { adagrad { initial_g2sum: 4 } }"}) {
    const std::unique_ptr<SparseTable> to = MakeCounted(SmallDesc(other));
    std::istringstream in(SavedAs(*table));
    const Status status = to->Load(kAllShards, in, LoadMode::kNew);
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(status.message(), HasSubstr("CtrCommonAccessor embed: SparseAdaGradSGDRule initial_g2sum=3"));
  }
  const std::unique_ptr<SparseTable> to =
      MakeCounted(SmallDesc("ctr_accessor_param { click_coeff: 3 } embed_sgd_param { adagrad { learning_rate: 1 } }"));
  std::istringstream in(SavedAs(*table));
  EXPECT_TRUE(to->Load(kAllShards, in, LoadMode::kNew).ok()) << "coefficients and rates may change";
}

TEST(CtrRows, AShrinkFreesRowsForOthers) {
  const std::string accessor = "ctr_accessor_param { delete_threshold: 1 }";
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc(accessor));
  const auto fill = [&](uint64_t from, float clicks) {
    for (uint64_t key = from; key < from + 20000; ++key) {
      ASSERT_TRUE(PushTo(*table, {key}, {clicks, clicks, 1, 1, 1}).ok());
    }
  };
  fill(0, 1);  // 0.98 after the shrink
  fill(50000, 2);
  const int64_t bytes = table->stats().bytes;
  Result<ShrinkReport> shrunk = AsCounted(table.get())->Shrink(2);
  ASSERT_TRUE(shrunk.ok());
  EXPECT_EQ(shrunk->deleted, 20000);
  EXPECT_EQ(shrunk->rows, 20000);
  EXPECT_THAT(RowOf(*table, 5), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(RowOf(*table, 50005)[CtrRows::kShow], FloatEq(2 * 0.98F));
  EXPECT_LE(table->stats().bytes, bytes);
  fill(100000, 1);
  EXPECT_LE(table->stats().bytes, bytes) << "freed rows are given out again";
  EXPECT_EQ(table->stats().rows, 40000);
  EXPECT_EQ(table->FindNonFinite().rows, 0);

  const std::unique_ptr<SparseTable> other = MakeCounted(SmallDesc(accessor));
  for (uint64_t key = 119999; key >= 100000; --key) {
    ASSERT_TRUE(PushTo(*other, {key}, {1, 1, 1, 1, 1}).ok());
  }
  const std::vector<float> reused = RowOf(*table, 100007);
  EXPECT_EQ(reused, RowOf(*other, 100007)) << "nothing is left of the row that was there";
}

TEST(CtrRows, UnseenRowsGoAfterTheirDays) {
  const std::unique_ptr<SparseTable> table = MakeCounted(
      SmallDesc("ctr_accessor_param { delete_threshold: 0 delete_after_unseen_days: 1 show_click_decay_rate: 1 }"));
  ASSERT_TRUE(PushTo(*table, {1, 2}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}).ok());
  const auto shrink = [&] { return AsCounted(table.get())->Shrink(1)->rows; };
  EXPECT_EQ(shrink(), 2);
  EXPECT_EQ(shrink(), 2);
  ASSERT_TRUE(PushTo(*table, {2}, {1, 1, 1, 1, 1}).ok());
  EXPECT_EQ(shrink(), 1) << "2 days without key 1";
  EXPECT_EQ(RowOf(*table, 2)[CtrRows::kShow], 2);
}

TEST(CtrRows, BaseAndDeltaLeaveOutWhatIsWorthLittle) {
  const std::unique_ptr<SparseTable> table = MakeCounted(
      SmallDesc("ctr_accessor_param { base_threshold: 2 delta_threshold: 0.5 delta_keep_days: 0 delete_threshold: 0 "
                "show_click_decay_rate: 1 }"));
  const auto saved = [&](TableContent content) {
    std::istringstream in(SavedAs(*table, content));
    const std::unique_ptr<SparseTable> again = MakeCounted(SmallDesc());
    EXPECT_TRUE(again->Load(kAllShards, in, LoadMode::kNew).ok());
    std::string keys;
    for (uint64_t key = 1; key <= 3; ++key) keys += RowOf(*again, key)[CtrRows::kShow] > 0 ? std::to_string(key) : "";
    return keys;
  };
  ASSERT_TRUE(PushTo(*table, {1, 2, 3}, {1, 1, 1, 1, 1, 2, 2, 1, 1, 1, 4, 3, 1, 1, 1}).ok());
  EXPECT_EQ(saved(TableContent::kWeights), "123");
  EXPECT_EQ(saved(TableContent::kBase), "23");
  EXPECT_EQ(saved(TableContent::kDelta), "23");
  ASSERT_TRUE(AsCounted(table.get())->WasSaved(TableContent::kBase).ok());
  EXPECT_EQ(saved(TableContent::kBase), "23");
  EXPECT_EQ(saved(TableContent::kDelta), "") << "nothing is new";
  ASSERT_TRUE(PushTo(*table, {2, 3}, {1, 1, 1, 1, 1, 1, 0, 1, 1, 1}).ok());
  EXPECT_EQ(saved(TableContent::kDelta), "2") << "one show more is worth 0.1";
  ASSERT_TRUE(AsCounted(table.get())->WasSaved(TableContent::kDelta).ok());
  EXPECT_EQ(saved(TableContent::kDelta), "");
  ASSERT_TRUE(AsCounted(table.get())->Shrink(1).ok());
  EXPECT_EQ(saved(TableContent::kBase), "") << "unseen for a day";
  EXPECT_EQ(saved(TableContent::kWeights), "123");
}

/// Workers lose counts to each other without row locks, but never a float in halves; with locks they lose none.
TEST(CtrRows, RowLocksCountEveryShow) {
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc());
  RowLocks locks;
  const auto work = [&] {
    RowBatch rows;
    for (int i = 0; i < 5000; ++i) {
      ASSERT_TRUE(table->Pull(std::vector<uint64_t>{1, 2}, PullMode::kInsert, &rows).ok());
      const std::vector<float> values = {1, 1, 0.1F, 0, 0, 1, 0, 0.1F, 0, 0};
      ASSERT_TRUE(table->Push(rows, values, {.locks = &locks}).ok());
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(RowOf(*table, 1)[CtrRows::kShow], 10000);
  EXPECT_EQ(RowOf(*table, 1)[CtrRows::kClick], 10000);
  EXPECT_EQ(RowOf(*table, 2)[CtrRows::kClick], 0);
}

// Tables of linear parts have no embedx: embed learns as in any other row, and means over no weights are no NaN.
TEST(CtrRows, EmbedAloneLearnsAsBesideAnEmbedx) {
  for (const std::string rule : {"SparseNaiveSGDRule", "SparseAdaGradSGDRule", "StdAdaGradSGDRule", "SparseAdamSGDRule",
                                 "SparseSharedAdamSGDRule"}) {
    const std::string rules =
        " embed_sgd_param { name: \"" + rule + "\" } embedx_sgd_param { name: \"" + rule + "\" } embedx_dim: ";
    const std::unique_ptr<SparseTable> alone = MakeCounted(SmallDesc(rules + "0"));
    const std::unique_ptr<SparseTable> beside = MakeCounted(SmallDesc(rules + "2"));
    for (const float gradient : {0.5F, -0.25F, 2.0F}) {
      ASSERT_TRUE(PushTo(*alone, {7, 8}, {2, 1, gradient, 1, 0, 1}, 3).ok());
      ASSERT_TRUE(PushTo(*beside, {7, 8}, {2, 1, gradient, 9, 9, 1, 0, 1, 9, 9}, 3).ok());
    }
    for (const uint64_t key : {7, 8}) {
      const std::vector<float> row = RowOf(*alone, key);
      const std::vector<float> other = RowOf(*beside, key);
      EXPECT_TRUE(std::equal(row.begin(), row.begin() + 3, other.begin())) << rule;
      EXPECT_TRUE(std::all_of(row.begin(), row.end(), [](float f) { return std::isfinite(f); })) << rule;
    }
    EXPECT_EQ(AsCounted(alone.get())->Count().value().with_embedx, 2);
  }
}

TEST(CtrRows, AWarmPushAllocatesNothing) {
  const std::unique_ptr<SparseTable> table = MakeCounted(SmallDesc());
  std::vector<uint64_t> keys(200);
  std::iota(keys.begin(), keys.end(), 1);
  const std::vector<float> values(keys.size() * 5, 1.0F);
  RowBatch rows;
  ASSERT_TRUE(table->Pull(keys, PullMode::kInsert, &rows).ok());
  const AllocationCounter allocations;
  ASSERT_TRUE(table->Pull(keys, PullMode::kInsert, &rows).ok());
  ASSERT_TRUE(table->Push(rows, values, {}).ok());
  EXPECT_EQ(allocations.count(), 0);
}

TEST(CtrRows, WhatAnAccessorCannotBeIsSaid) {
  EXPECT_EQ(
      WhyNot("accessor_class: \"DownpourUnitAccessor\""),
      "table \"t\": accessor: accessor_class: no accessor \"DownpourUnitAccessor\"; there are CtrCommonAccessor, in "
      "older words DownpourCtrAccessor, and SparseAccessor, which hides the counts");
  EXPECT_EQ(WhyNot("embedx_dim: 1025"), "table \"t\": accessor: embedx_dim: must be at most 1024, not 1025");
  EXPECT_THAT(WhyNot("ctr_accessor_param { show_click_decay_rate: 0 }"), HasSubstr("must be in (0, 1], not 0"));
  EXPECT_EQ(WhyNot("fea_dim: 11 accessor_class: \"DownpourCtrAccessor\""), "");
  EXPECT_THAT(
      WhyNot("embedx_sgd_param { name: \"SparseAdaGradSGDrule\" }"),
      HasSubstr("embedx_sgd_param.name: no rule \"SparseAdaGradSGDrule\"; did you mean \"SparseAdaGradSGDRule\"?"));
}

}  // namespace
}  // namespace millrace
