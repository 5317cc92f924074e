#include "table/hash_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <unordered_map>

#include "allocation_counter.h"
#include "model.pb.h"
#include "rows_in_memory.h"
#include "table/row_policy.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TableDesc Desc(int dim, const std::string& rule = "sgd") {
  TableDesc desc;
  desc.set_name("t");
  desc.set_dim(dim);
  desc.mutable_init()->set_uniform(0.5F);
  desc.set_initial_rows(64);
  if (rule == "sgd") desc.mutable_optimizer()->mutable_sgd();
  if (rule == "adagrad") desc.mutable_optimizer()->mutable_adagrad();
  if (rule == "adam") desc.mutable_optimizer()->mutable_adam();
  if (rule == "ftrl") desc.mutable_optimizer()->mutable_ftrl();
  return desc;
}

std::unique_ptr<SparseTable> Make(const TableDesc& desc, uint64_t seed = 1) {
  Result<std::unique_ptr<SparseTable>> table = CreateHashTable(desc, seed);
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return std::move(table).value();
}

std::vector<float*> Pull(SparseTable& table, const std::vector<uint64_t>& keys, PullMode mode = PullMode::kInsert) {
  RowBatch rows;
  EXPECT_TRUE(table.Pull(keys, mode, &rows).ok());
  return RowsInMemory(rows);
}

Status Push(SparseTable& table, const std::vector<uint64_t>& keys, const std::vector<float>& grads,
            const PushContext& context) {
  RowBatch rows;
  MR_TRY(table.Pull(keys, PullMode::kInsert, &rows));
  return table.Push(rows, grads, context);
}

std::string Saved(const SparseTable& table, TableContent content = TableContent::kAll) {
  std::ostringstream out;
  EXPECT_TRUE(table.Save(kAllShards, content, out).ok());
  return out.str();
}

TEST(HashTable, BehavesAsAMapThroughGrowth) {
  for (const uint32_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    std::mt19937_64 rng(seed);
    const std::unique_ptr<SparseTable> table = Make(Desc(3));
    std::unordered_map<uint64_t, std::vector<float>> model;
    std::unordered_map<uint64_t, float*> places;
    for (int batch = 0; batch < 60; ++batch) {
      std::set<uint64_t> distinct;
      for (int i = 0; i < 200; ++i) distinct.insert(rng() % 4 == 0 ? rng() : rng() % 3000);
      if (batch % 7 == 0) distinct.insert({0, UINT64_MAX});
      const std::vector<uint64_t> keys(distinct.begin(), distinct.end());
      const std::vector<float*> rows = Pull(*table, keys);
      std::vector<float> grads(keys.size() * 3);
      for (float& g : grads) g = static_cast<float>(rng() % 17) - 8.0F;
      for (size_t i = 0; i < keys.size(); ++i) {
        auto [at, is_new] = model.try_emplace(keys[i], rows[i], rows[i] + 3);
        if (is_new) places[keys[i]] = rows[i];
        ASSERT_EQ(places[keys[i]], rows[i]) << "a row moved";
        ASSERT_EQ(std::vector<float>(rows[i], rows[i] + 3), at->second);
        for (size_t d = 0; d < 3; ++d) at->second[d] -= 0.5F * grads[i * 3 + d];
      }
      ASSERT_TRUE(Push(*table, keys, grads, {0.5F, nullptr}).ok());
    }
    EXPECT_EQ(table->stats().rows, static_cast<int64_t>(model.size()));
    for (const auto& [key, values] : model) {
      const float* row = Pull(*table, {key}, PullMode::kReadOnly)[0];
      ASSERT_EQ(std::vector<float>(row, row + 3), values);
    }
  }
}

TEST(HashTable, InitialValuesDependOnSeedNameAndKeyAlone) {
  const std::unique_ptr<SparseTable> a = Make(Desc(8));
  const std::unique_ptr<SparseTable> b = Make(Desc(8));
  Pull(*a, {5, 6, 7});
  Pull(*b, {7, 1, 2, 5, 6});
  const std::vector<float*> from_a = Pull(*a, {5, 6, 7, 1, 2});
  const std::vector<float*> from_b = Pull(*b, {5, 6, 7, 1, 2});
  for (size_t i = 0; i < 5; ++i) {
    for (size_t d = 0; d < 8; ++d) {
      EXPECT_EQ(from_a[i][d], from_b[i][d]);
      EXPECT_LT(std::abs(from_a[i][d]), 0.5F);
    }
  }
  EXPECT_NE(from_a[0][0], from_a[1][0]);
  EXPECT_NE(from_a[0][0], Pull(*Make(Desc(8), 2), {5})[0][0]);
  TableDesc other = Desc(8);
  other.set_name("u");
  EXPECT_NE(from_a[0][0], Pull(*Make(other), {5})[0][0]);
}

TEST(HashTable, ReadOnlyPullShowsInitialValuesAndMakesNothing) {
  const std::unique_ptr<SparseTable> table = Make(Desc(4, "adagrad"));
  Pull(*table, {3});
  RowBatch shown;
  ASSERT_TRUE(table->Pull(std::vector<uint64_t>{9, 3, 10}, PullMode::kReadOnly, &shown).ok());
  EXPECT_EQ(table->stats().rows, 1);
  EXPECT_THAT(shown.missing(), ElementsAre(0, 2));
  const std::vector<float> nine(shown.weights()[0], shown.weights()[0] + 4);
  const std::vector<float> ten(shown.weights()[2], shown.weights()[2] + 4);
  const std::vector<float*> made = Pull(*table, {9, 10});
  EXPECT_EQ(nine, std::vector<float>(made[0], made[0] + 4));
  EXPECT_EQ(ten, std::vector<float>(made[1], made[1] + 4));
}

TEST(HashTable, ThreadsThatInsertTheSameKeysMeetInTheSameRows) {
  const std::unique_ptr<SparseTable> table = Make(Desc(2));
  constexpr int kThreads = 4;
  std::vector<std::unordered_map<uint64_t, float*>> seen(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&table, &mine = seen[static_cast<size_t>(t)], t] {
        std::mt19937_64 rng(static_cast<uint64_t>(t) % 2);
        for (int batch = 0; batch < 100; ++batch) {
          std::vector<uint64_t> keys(150);
          for (uint64_t& key : keys) key = rng() % 20000;
          const std::vector<float*> rows = Pull(*table, keys);
          for (size_t i = 0; i < keys.size(); ++i) {
            const float* row = mine.try_emplace(keys[i], rows[i]).first->second;
            if (row != rows[i]) std::abort();
          }
        }
      });
    }
  }
  std::unordered_map<uint64_t, float*> all;
  for (const auto& mine : seen) {
    for (const auto& [key, row] : mine) EXPECT_EQ(all.try_emplace(key, row).first->second, row);
  }
  EXPECT_EQ(table->stats().rows, static_cast<int64_t>(all.size()));
  const std::unique_ptr<SparseTable> alone = Make(Desc(2));
  for (const auto& [key, row] : all) EXPECT_EQ(Pull(*alone, {key})[0][1], row[1]);
}

TEST(HashTable, RowLocksLoseNoUpdate) {
  TableDesc desc = Desc(16);
  desc.mutable_init()->set_constant(0);
  const std::unique_ptr<SparseTable> table = Make(desc);
  RowLocks locks;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const std::vector<uint64_t> keys = {1, 2, 3};
        const std::vector<float> grads(3 * 16, 1.0F);
        for (int i = 0; i < 500; ++i) {
          if (!Push(*table, keys, grads, {1.0F, &locks}).ok()) std::abort();
        }
      });
    }
  }
  for (const float* row : Pull(*table, {1, 2, 3})) {
    for (int d = 0; d < 16; ++d) EXPECT_EQ(row[d], -2000.0F);
  }
}

TEST(HashTable, HogwildPushesAreHiddenFromTheThreadSanitizerAndStayFinite) {
  const std::unique_ptr<SparseTable> table = Make(Desc(16, "adagrad"));
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        const std::vector<float> grads(3 * 16, 1.0F);
        for (int i = 0; i < 500; ++i) {
          if (!Push(*table, {1, 2, 3}, grads, {0.1F, nullptr}).ok()) std::abort();
        }
      });
    }
  }
  for (const float* row : Pull(*table, {1, 2, 3})) {
    EXPECT_LT(row[0], 0.0F);
    EXPECT_LE(row[16], 1000.0F);
    EXPECT_GE(row[16], 500.0F);
  }
}

TEST(HashTable, SavesEqualBytesWhateverTheOrderAndLoadsThem) {
  for (const std::string rule : {"sgd", "adagrad", "adam", "ftrl"}) {
    SCOPED_TRACE(rule);
    const std::unique_ptr<SparseTable> a = Make(Desc(5, rule));
    const std::unique_ptr<SparseTable> b = Make(Desc(5, rule));
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < 10000; ++i) keys.push_back(i * i * 7919);
    Pull(*a, keys);
    std::reverse(keys.begin(), keys.end());
    Pull(*b, keys);
    const std::vector<float> grads(keys.size() * 5, 0.25F);
    for (SparseTable* table : {a.get(), b.get()}) {
      ASSERT_TRUE(Push(*table, keys, grads, {0.1F, nullptr}).ok());
    }
    const std::string bytes = Saved(*a);
    EXPECT_EQ(bytes, Saved(*b));

    const std::unique_ptr<SparseTable> loaded = Make(Desc(5, rule), 99);
    std::istringstream in(bytes);
    ASSERT_TRUE(loaded->Load(kAllShards, in, LoadMode::kNew).ok());
    EXPECT_EQ(Saved(*loaded), bytes);
    // The next step is the same as well: state and step number came along.
    for (SparseTable* table : {a.get(), loaded.get()}) {
      ASSERT_TRUE(Push(*table, keys, grads, {0.1F, nullptr}).ok());
    }
    EXPECT_EQ(Saved(*loaded), Saved(*a));
    std::istringstream again(bytes);
    EXPECT_EQ(loaded->Load(kAllShards, again, LoadMode::kNew).code(), StatusCode::kAlreadyExists);
    // Who wants no row reads none.
    const std::unique_ptr<SparseTable> empty = Make(Desc(5, rule), 99);
    std::istringstream rest(bytes);
    ASSERT_TRUE(empty->Load({}, rest, LoadMode::kNew).ok());
    EXPECT_LT(rest.tellg(), static_cast<std::streamoff>(bytes.size() / 4));
    EXPECT_TRUE(empty->IsEmptyHere());
    EXPECT_EQ(empty->stats().pushes, a->stats().pushes - 1);
  }
}

TEST(HashTable, WeightsAloneFitATableOfAnyRule) {
  const std::unique_ptr<SparseTable> trained = Make(Desc(3, "adagrad"));
  const std::vector<uint64_t> keys = {1, 2, 99};
  ASSERT_TRUE(Push(*trained, keys, std::vector<float>(9, 0.5F), {0.1F, nullptr}).ok());
  const std::string weights = Saved(*trained, TableContent::kWeights);
  EXPECT_LT(weights.size(), Saved(*trained).size());
  for (const char* rule : {"sgd", "adagrad", "adam", "ftrl"}) {
    SCOPED_TRACE(rule);
    const std::unique_ptr<SparseTable> loaded = Make(Desc(3, rule), 7);
    std::istringstream in(weights);
    ASSERT_TRUE(loaded->Load(kAllShards, in, LoadMode::kNew).ok());
    EXPECT_EQ(Saved(*loaded, TableContent::kWeights), weights);
    EXPECT_EQ(loaded->stats().rows, 3);
    // The state is that of new rows.
    const std::unique_ptr<SparseTable> anew = Make(Desc(3, rule), 7);
    const int floats = loaded->shape().row_floats;
    const float* state = Pull(*loaded, {99})[0] + 3;
    EXPECT_TRUE(std::equal(state, state + floats - 3, Pull(*anew, {99})[0] + 3));
  }
  const std::unique_ptr<SparseTable> wide = Make(Desc(4));
  std::istringstream in(weights);
  EXPECT_THAT(wide->Load(kAllShards, in, LoadMode::kNew).ToString(), HasSubstr("the saved table \"t\" has dim 3"));
}

TEST(HashTable, EveryFlippedOrMissingByteIsFound) {
  const std::unique_ptr<SparseTable> table = Make(Desc(2));
  Pull(*table, {1, 2, 3, 1000});
  const std::string bytes = Saved(*table);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    std::istringstream in(bad);
    EXPECT_EQ(Make(Desc(2))->Load(kAllShards, in, LoadMode::kNew).code(), StatusCode::kBadData) << "byte " << i;
    std::istringstream cut(bytes.substr(0, i));
    EXPECT_EQ(Make(Desc(2))->Load(kAllShards, cut, LoadMode::kNew).code(), StatusCode::kBadData) << "cut at " << i;
  }
}

TEST(HashTable, FindsRowsThatAreNotFiniteWhereverTheyLie) {
  for (const int dim : {1, 3, 16}) {
    const std::unique_ptr<SparseTable> table = Make(Desc(dim, "adagrad"));
    EXPECT_EQ(table->FindNonFinite().rows, 0);
    std::vector<uint64_t> keys(60000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i + 7;
    const std::vector<float*> rows = Pull(*table, keys);
    EXPECT_EQ(table->FindNonFinite().rows, 0);
    rows.back()[0] = std::numeric_limits<float>::infinity();
    rows[40000][table->shape().row_floats - 1] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(table->FindNonFinite().rows, 2);
    EXPECT_EQ(table->FindNonFinite().least_key, 40007U);
  }
}

TEST(HashTable, RefusesATableOfAnotherShapeOrRule) {
  std::istringstream in(Saved(*Make(Desc(5, "adagrad"))));
  const Status status = Make(Desc(5, "sgd"))->Load(kAllShards, in, LoadMode::kNew);
  EXPECT_EQ(status.ToString(),
            "invalid configuration: table \"t\": the saved table \"t\" has dim 5 and optimizer \"adagrad epsilon=1e-06 "
            "initial_accumulator=0\", the configured one has dim 5 and optimizer \"sgd\"");
}

TEST(HashTable, RefusesDescriptionsThatCannotBe) {
  EXPECT_THAT(CreateHashTable(Desc(0), 1).status().message(), HasSubstr("dim must be between 1 and 65536: 0"));
  TableDesc xavier = Desc(4);
  xavier.mutable_init()->set_xavier(true);
  EXPECT_THAT(CreateHashTable(xavier, 1).status().message(), HasSubstr("xavier needs a vocabulary"));
  TableDesc endless = Desc(4);
  endless.set_initial_rows(int64_t{1} << 36);
  EXPECT_THAT(CreateHashTable(endless, 1).status().message(),
              HasSubstr("initial_rows: 68719476736 need an index of 2048 GiB, and this machine has "));
  TableDesc none = Desc(4, "none");
  EXPECT_THAT(CreateHashTable(none, 1).status().message(), HasSubstr("table \"t\": no optimizer"));
  TableDesc eager = Desc(4, "adam");
  eager.mutable_optimizer()->mutable_adam()->set_lazy_mode(false);
  EXPECT_THAT(CreateHashTable(eager, 1).status().message(), HasSubstr("lazy_mode"));
}

TEST(HashTable, WarmPullsAndPushesAllocateNothing) {
  const std::unique_ptr<SparseTable> table = Make(Desc(16, "adagrad"));
  std::vector<uint64_t> keys(5000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 31;
  const std::vector<float> grads(keys.size() * 16, 1.0F);
  RowBatch rows;
  ASSERT_TRUE(table->Pull(keys, PullMode::kInsert, &rows).ok());
  RowBatch gradient;
  gradient.Take(rows);
  const AllocationCounter counter;
  ASSERT_TRUE(table->Pull(keys, PullMode::kInsert, &rows).ok());
  gradient.Take(rows);
  ASSERT_TRUE(table->Push(gradient, grads, {0.1F, nullptr}).ok());
  EXPECT_EQ(counter.count(), 0);
}

TEST(RowBatch, GoesBackToItsTableAlone) {
  TableDesc other = Desc(2);
  other.set_name("u");
  const std::unique_ptr<SparseTable> t = Make(Desc(2));
  const std::unique_ptr<SparseTable> u = Make(other);
  const std::vector<uint64_t> keys = {4, 5};
  const std::vector<float> grads(4, 1.0F);
  RowBatch rows;
  ASSERT_TRUE(t->Pull(keys, PullMode::kInsert, &rows).ok());
  Pull(*u, keys);
  const std::string before = Saved(*t) + Saved(*u);
  const Status pushed = u->Push(rows, grads, {0.1F, nullptr});
  EXPECT_EQ(pushed.code(), StatusCode::kInvalidConfig);
  EXPECT_EQ(
      pushed.message(),
      "table \"u\": a gradient for rows of table \"t\" is pushed to it: push it to the table that its lookup reads");
  float matrix[4] = {0, 1, 2, 3};
  rows.ShowMatrix(std::vector<uint64_t>{1, 0}, matrix, 2);
  EXPECT_EQ(rows.weights()[0][1], 3);
  EXPECT_THAT(t->Push(rows, grads, {0.1F, nullptr}).message(), HasSubstr("for rows of no table is pushed"));
  EXPECT_EQ(Saved(*t) + Saved(*u), before);
}

// Values that a table shows for keys without a row have no room for an optimizer's state behind them.
TEST(RowBatch, OfAReadOnlyPullTakesNoGradientsForRowsThatAreNotThere) {
  const std::unique_ptr<SparseTable> table = Make(Desc(2, "adagrad"));
  Pull(*table, {4});
  RowBatch rows;
  ASSERT_TRUE(table->Pull(std::vector<uint64_t>{4, 5}, PullMode::kReadOnly, &rows).ok());
  const std::vector<float> grads(4, 1.0F);
  EXPECT_EQ(table->Push(rows, grads, {0.1F, nullptr}).code(), StatusCode::kInternal);
  RowBatch gradient;
  gradient.Take(rows);
  EXPECT_EQ(gradient.table(), table.get());
  EXPECT_EQ(gradient.size(), 0);
  EXPECT_EQ(Saved(*table), [] {
    const std::unique_ptr<SparseTable> untouched = Make(Desc(2, "adagrad"));
    Pull(*untouched, {4});
    return Saved(*untouched);
  }());
}

TEST(RowBatch, TakesRowsInTheOrderInWhichTheyAreAdded) {
  const std::unique_ptr<SparseTable> table = Make(Desc(1));
  const std::vector<float*> places = Pull(*table, {1, 2, 3});
  RowBatch rows;
  ASSERT_TRUE(table->Pull(std::vector<uint64_t>{1, 2, 3}, PullMode::kInsert, &rows).ok());
  EXPECT_EQ(rows.weights().data()[3], nullptr) << "ids without a row are read there";
  RowBatch gradient;
  gradient.Take(rows);
  gradient.Append(rows, 1);
  gradient.Append(rows);
  ASSERT_EQ(gradient.size(), 7);
  const std::vector<float> grads = {1, 2, 4};
  const std::vector<float> before = {*places[0], *places[1], *places[2]};
  RowBatch last;
  last.Start(table.get());
  for (const size_t i : {3, 0, 2}) last.Append(gradient, i);
  ASSERT_TRUE(table->Push(last, grads, {1.0F, nullptr}).ok());
  EXPECT_EQ(*places[1], before[1] - 1);
  EXPECT_EQ(*places[0], before[0] - 2);
  EXPECT_EQ(*places[2], before[2] - 4);
}

TEST(RowPolicyTest, RoundingLeavesNoSumOfSquaresOfACopyBelowZero) {
  const std::unique_ptr<RowPolicy> policy = MakeOptimizedRows(Desc(2, "adagrad"), 1).value();
  std::vector<float> row(4);
  policy->Start(7, row.data());
  row[2] = 1e-6F;
  const std::vector<float> moved = {1, 0, -2e-6F, 3};
  const float first = row[0];
  policy->AddTo(moved.data(), 0.1F, row.data());
  EXPECT_EQ(row[0], first + 1);
  EXPECT_EQ(row[2], 0);
  EXPECT_EQ(row[3], 3);
}

}  // namespace
}  // namespace millrace
