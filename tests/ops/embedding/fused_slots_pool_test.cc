#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "allocation_counter.h"
#include "kernels/row_locks.h"
#include "ops/embedding/op_runner.h"
#include "ops/embedding/slot_rows.h"
#include "ops/row_merger.h"
#include "rows_in_memory.h"
#include "table/hash_table.h"

namespace millrace {
namespace {

struct Slot {
  std::string name;
  std::string parameter;
  int64_t salt = 0;
  std::vector<uint64_t> ids;
  std::vector<uint32_t> lod;
};

/// A random job: slots over matrices and tables, some of which share their parameter.
struct Job {
  std::vector<Slot> slots;
  std::map<std::string, int64_t> dims;  ///< of parameters
  std::vector<std::string> parameters;  ///< in the order of their first slot
  std::string pooltype;
  int64_t padding = -1;
  int rows = 0;
  std::vector<int64_t> dense_at, dense_widths;

  static constexpr int64_t kVocabulary = 50;
  static bool IsTable(const std::string& parameter) { return parameter[0] == 't'; }

  Job(uint32_t seed, OpRunner& runner) {
    std::mt19937 rng(seed);
    pooltype = std::vector<std::string>{"SUM", "AVERAGE", "SQRT"}[rng() % 3];
    padding = rng() % 2 == 0 ? static_cast<int64_t>(rng() % 5) : -1;
    rows = static_cast<int>(rng() % 20) + 1;
    const std::vector<std::string> names = {"m0", "m1", "t0", "t1"};
    const size_t count = rng() % 6 + 1;
    for (size_t i = 0; i < count; ++i) {
      Slot& slot = slots.emplace_back();
      slot.name = "s" + std::to_string(i);
      slot.parameter = names[rng() % names.size()];
      slot.salt = IsTable(slot.parameter) && rng() % 2 == 0 ? static_cast<int64_t>(i) * 7919 + 1 : 0;
      slot.lod = {0};
      for (int row = 0; row < rows; ++row) {
        for (uint64_t n = rng() % 5; n > 0; --n) slot.ids.push_back(rng() % kVocabulary);
        slot.lod.push_back(static_cast<uint32_t>(slot.ids.size()));
      }
      if (dims.try_emplace(slot.parameter, std::vector<int64_t>{1, 8, 16, 5}[rng() % 4]).second) {
        parameters.push_back(slot.parameter);
      }
    }
    for (size_t i = rng() % 3; i > 0; --i) {
      dense_at.push_back(static_cast<int64_t>(rng() % (count + 1)));
      dense_widths.push_back(static_cast<int64_t>(rng() % 4) + 1);
    }
    std::sort(dense_at.begin(), dense_at.end());
    std::uniform_real_distribution<float> draw(-1, 1);
    const auto random = [&](int64_t n) {
      std::vector<float> values(static_cast<size_t>(n));
      for (float& v : values) v = draw(rng);
      return values;
    };
    for (const std::string& parameter : parameters) {
      const int64_t dim = dims[parameter];
      if (IsTable(parameter)) {
        runner.MakeTable(parameter, static_cast<int>(dim));
      } else {
        runner.SetFloats(parameter, {kVocabulary, dim}, random(kVocabulary * dim));
      }
    }
    for (const Slot& slot : slots) runner.SetIds(slot.name, slot.ids, slot.lod);
    for (size_t m = 0; m < dense_at.size(); ++m) {
      runner.SetFloats("d" + std::to_string(m), {rows, dense_widths[m]}, random(rows * dense_widths[m]));
    }
    int64_t width = 0;
    for (const Slot& slot : slots) width += dims[slot.parameter];
    for (const int64_t dense : dense_widths) width += dense;
    runner.SetFloats("out@GRAD", {rows, width}, random(rows * width));
  }

  OpDesc Op(const std::string& type) const {
    OpDesc op;
    op.set_type(type);
    std::vector<std::string> ids, w, dense, grads;
    std::vector<int64_t> salts;
    for (const Slot& slot : slots) {
      ids.push_back(slot.name);
      w.push_back(slot.parameter);
      salts.push_back(slot.salt);
    }
    for (size_t m = 0; m < dense_at.size(); ++m) dense.push_back("d" + std::to_string(m));
    SetInput(op, "Ids", ids);
    SetInput(op, "W", w);
    SetAttr(op, "pooltype", pooltype);
    SetAttr(op, "padding_idx", padding);
    SetAttr(op, "update_padding", false);
    SetAttr(op, "slot_salts", salts);
    SetAttr(op, "dense_at", dense_at);
    if (type == "fused_slots_pool") {
      if (!dense.empty()) SetInput(op, "Dense", dense);
      SetOutput(op, "Out", {"out"});
      SetOutput(op, "Rows", {"rows"});
    } else {
      for (const std::string& name : parameters) grads.push_back(GradName(name));
      SetInput(op, "Rows", {"rows"});
      SetInput(op, "Out@GRAD", {"out@GRAD"});
      SetOutput(op, "W@GRAD", grads);
      SetAttr(op, "dense_widths", dense_widths);
    }
    return op;
  }

  float Factor(size_t length) const {
    const auto n = static_cast<float>(length);
    return pooltype == "SUM" ? 1.0F : 1.0F / (pooltype == "SQRT" ? std::sqrt(n) : n);
  }
  uint64_t Key(const Slot& slot, uint64_t id) const { return SlotKey(id, static_cast<uint64_t>(slot.salt)); }
};

std::vector<float> RowOf(OpRunner& runner, const std::string& parameter, uint64_t key, size_t dim) {
  const float* row = nullptr;
  if (Job::IsTable(parameter)) {
    RowBatch pulled;
    EXPECT_TRUE(runner.scope()
                    .Find(parameter)
                    ->Get<std::unique_ptr<SparseTable>>()
                    ->Pull(std::span(&key, 1), PullMode::kInsert, &pulled)
                    .ok());
    row = pulled.weights()[0];
  } else {
    row = runner.tensor(parameter)->data<float>() + key * dim;
  }
  return {row, row + dim};
}

// What separate lookups, pools and a concat give, with the same order of additions.
std::vector<float> ExpectedOut(const Job& job, OpRunner& runner) {
  std::vector<std::vector<float>> out(static_cast<size_t>(job.rows));
  size_t dense = 0;
  const auto add_dense = [&](size_t slots_before) {
    for (; dense < job.dense_at.size() && static_cast<size_t>(job.dense_at[dense]) == slots_before; ++dense) {
      const std::vector<float> values = runner.values("d" + std::to_string(dense));
      const auto width = static_cast<size_t>(job.dense_widths[dense]);
      for (size_t r = 0; r < out.size(); ++r) {
        for (size_t d = 0; d < width; ++d) out[r].push_back(values[r * width + d]);
      }
    }
  };
  for (size_t s = 0; s < job.slots.size(); ++s) {
    add_dense(s);
    const Slot& slot = job.slots[s];
    const auto dim = static_cast<size_t>(job.dims.at(slot.parameter));
    for (size_t r = 0; r < out.size(); ++r) {
      std::vector<float> sum(dim, 0.0F);
      for (uint32_t i = slot.lod[r]; i < slot.lod[r + 1]; ++i) {
        if (static_cast<int64_t>(slot.ids[i]) == job.padding) continue;
        const std::vector<float> row = RowOf(runner, slot.parameter, job.Key(slot, slot.ids[i]), dim);
        for (size_t d = 0; d < dim; ++d) sum[d] += row[d];
      }
      const size_t length = slot.lod[r + 1] - slot.lod[r];
      for (float v : sum) out[r].push_back(length == 0 ? 0.0F : v * job.Factor(length));
    }
  }
  add_dense(job.slots.size());
  std::vector<float> flat;
  for (const auto& row : out) flat.insert(flat.end(), row.begin(), row.end());
  return flat;
}

std::map<uint64_t, std::vector<float>> ExpectedGrad(const Job& job, OpRunner& runner, const std::string& parameter) {
  std::map<uint64_t, std::vector<float>> sums;
  const std::vector<float> grad = runner.values("out@GRAD");
  const size_t width = grad.size() / static_cast<size_t>(job.rows);
  size_t column = 0;
  size_t dense = 0;
  for (size_t s = 0; s < job.slots.size(); ++s) {
    for (; dense < job.dense_at.size() && static_cast<size_t>(job.dense_at[dense]) == s; ++dense) {
      column += static_cast<size_t>(job.dense_widths[dense]);
    }
    const Slot& slot = job.slots[s];
    const auto dim = static_cast<size_t>(job.dims.at(slot.parameter));
    for (size_t r = 0; r < static_cast<size_t>(job.rows) && slot.parameter == parameter; ++r) {
      const size_t length = slot.lod[r + 1] - slot.lod[r];
      for (uint32_t i = slot.lod[r]; i < slot.lod[r + 1]; ++i) {
        if (static_cast<int64_t>(slot.ids[i]) == job.padding) continue;
        std::vector<float>& sum = sums.try_emplace(job.Key(slot, slot.ids[i]), dim, 0.0F).first->second;
        for (size_t d = 0; d < dim; ++d) sum[d] += grad[r * width + column + d] * job.Factor(length);
      }
    }
    column += dim;
  }
  return sums;
}

// Adagrad's accumulators, behind the weights, tell which row a gradient came to.
void ExpectToReachItsRows(OpRunner& runner, const std::string& parameter, const SelectedRows& grad) {
  SparseTable* table = runner.scope().Find(parameter)->Get<std::unique_ptr<SparseTable>>().get();
  const auto dim = static_cast<size_t>(table->shape().dim);
  RowBatch pulled;
  ASSERT_TRUE(table->Pull(grad.rows, PullMode::kInsert, &pulled).ok());
  const std::vector<float*> rows = RowsInMemory(pulled);
  std::vector<float> values;
  for (size_t i = 0; i < rows.size(); ++i) values.insert(values.end(), dim, static_cast<float>(i + 1));
  ASSERT_TRUE(table->Push(grad.table_rows, values, {0.0F, nullptr}).ok());
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i][dim], static_cast<float>((i + 1) * (i + 1)));
}

TEST(FusedSlotsPool, EqualsSeparateLookupsToTheLastBit) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    OpRunner runner;
    const Job job(seed, runner);
    ASSERT_TRUE(runner.Run(job.Op("fused_slots_pool")).ok());
    ASSERT_EQ(runner.values("out"), ExpectedOut(job, runner));
    ASSERT_TRUE(runner.Run(job.Op("fused_slots_pool_grad")).ok());
    for (const std::string& parameter : job.parameters) {
      const SelectedRows& grad = *runner.rows(GradName(parameter));
      const auto expected = ExpectedGrad(job, runner, parameter);
      const auto dim = static_cast<size_t>(job.dims.at(parameter));
      ASSERT_TRUE(grad.merged);
      ASSERT_EQ(grad.rows.size(), expected.size()) << "each row once";
      ASSERT_EQ(grad.values.dims(), Dims({static_cast<int64_t>(expected.size()), static_cast<int64_t>(dim)}));
      for (size_t i = 0; i < grad.rows.size(); ++i) {
        const float* values = grad.values.data<float>() + i * dim;
        ASSERT_EQ(std::vector<float>(values, values + dim), expected.at(grad.rows[i]));
      }
      ASSERT_EQ(grad.has_table_rows(), Job::IsTable(parameter));
      if (Job::IsTable(parameter)) ExpectToReachItsRows(runner, parameter, grad);
    }
  }
}

TEST(FusedSlotsPool, RowLocksGiveTheSameNumbers) {
  const auto locks = std::make_unique<RowLocks>();
  FrameOptions locked;
  locked.update_mode = UpdateMode::kRowLock;
  locked.row_locks = locks.get();
  for (uint32_t seed = 0; seed < 40; ++seed) {
    OpRunner plain;
    OpRunner careful(locked);
    const Job job(seed, plain);
    const Job same(seed, careful);
    ASSERT_TRUE(plain.Run(job.Op("fused_slots_pool")).ok());
    ASSERT_TRUE(careful.Run(same.Op("fused_slots_pool")).ok());
    ASSERT_EQ(plain.values("out"), careful.values("out"));
  }
}

TEST(FusedSlotsPool, WarmBatchesAllocateNothing) {
  OpRunner runner;
  const Job job(5, runner);
  const auto forward = runner.Make(job.Op("fused_slots_pool"));
  const auto backward = runner.Make(job.Op("fused_slots_pool_grad"));
  ASSERT_TRUE(forward.ok() && backward.ok());
  ASSERT_TRUE((*forward)->Run({}).ok());
  ASSERT_TRUE((*backward)->Run({}).ok());
  const AllocationCounter counter;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*forward)->Run({}).ok());
    ASSERT_TRUE((*backward)->Run({}).ok());
  }
  EXPECT_EQ(counter.count(), 0);
}

TEST(FusedSlotsPool, TakesSlotsOfOneIdARowWithoutLod) {
  OpRunner runner;
  runner.SetFloats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<uint64_t> a = {2, 0};
  const std::vector<uint64_t> b = {1, 1, 2};
  const std::vector<uint32_t> lod = {0, 2, 3};
  runner.SetIds("a", a);
  runner.SetIds("b", b, lod);
  const OpDesc op = MakeOp("fused_slots_pool", {{"Ids", {"a", "b"}}, {"W", {"w", "w"}}}, {{"Out", {"out"}}});
  ASSERT_TRUE(runner.Run(op).ok());
  EXPECT_THAT(runner.values("out"), testing::ElementsAre(5, 6, 6, 8, 1, 2, 5, 6));
  runner.SetIds("a", b);
  EXPECT_EQ(runner.Run(op).message(), "slots \"a\" and \"b\" differ in rows: 3 and 2");
}

TEST(FusedSlotsPool, NamesAnIdOutOfRangeOrCountsItAsZeros) {
  OpRunner runner;
  runner.SetFloats("w", {3, 1}, {1, 2, 4});
  const std::vector<uint64_t> a = {2, 5, 0};
  const std::vector<uint32_t> lod = {0, 1, 3};
  runner.SetIds("a", a, lod);
  OpDesc op = MakeOp("fused_slots_pool", {{"Ids", {"a"}}, {"W", {"w"}}}, {{"Out", {"out"}}});
  EXPECT_EQ(runner.Run(op).ToString(),
            "bad data: slot \"a\", row 1 of the batch: the id is outside parameter \"w\", whose ids are 0..2; enlarge "
            "the vocabulary or set out_of_range to ZERO or MODULO: 5");
  SetAttr(op, "out_of_range", std::string("ZERO"));
  ASSERT_TRUE(runner.Run(op).ok());
  EXPECT_THAT(runner.values("out"), testing::ElementsAre(4, 1));
  SetAttr(op, "out_of_range", std::string("MODULO"));
  ASSERT_TRUE(runner.Run(op).ok());
  EXPECT_THAT(runner.values("out"), testing::ElementsAre(4, 5));
}

TEST(FusedSlotsPool, SaysWhatDoesNotFit) {
  OpRunner runner;
  runner.SetFloats("w", {3, 1}, {1, 2, 4});
  OpDesc op = MakeOp("fused_slots_pool", {{"Ids", {"a", "b"}}, {"W", {"w"}}}, {{"Out", {"out"}}});
  runner.tensor("a");
  runner.tensor("b");
  EXPECT_EQ(runner.Make(op).status().message(), "fused_slots_pool: Ids and W must be as many, one a slot: 2 and 1");
  SetInput(op, "W", {"w", "w"});
  SetAttr(op, "pooltype", std::string("MAX"));
  EXPECT_EQ(runner.Make(op).status().message(), "pooltype is one of SUM, AVERAGE, SQRT: \"MAX\"");
  SetAttr(op, "pooltype", std::string("SUM"));
  SetAttr(op, "dense_at", std::vector<int64_t>{3});
  EXPECT_EQ(runner.Make(op).status().message(), "fused_slots_pool: dense_at must ascend from 0 to the number of slots");
}

TEST(RowMerger, AddsEqualRowsInTheirOrder) {
  RowMerger merger;
  SelectedRows grad;
  grad.rows = {7, 3, 7, 7, 9};
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  std::copy(values.begin(), values.end(), grad.values.Resize<float>({5, 2}));
  const SelectedRows& merged = merger.Merge(grad);
  EXPECT_THAT(merged.rows, testing::ElementsAre(7, 3, 9));
  EXPECT_EQ(std::vector<float>(merged.values.data<float>(), merged.values.data<float>() + 6),
            (std::vector<float>{13, 16, 3, 4, 9, 10}));
  EXPECT_TRUE(merged.merged);
  EXPECT_EQ(&merger.Merge(merged), &merged) << "what is merged comes back as it is";
  grad.rows.clear();
  grad.values.Resize<float>({0, 2});
  EXPECT_TRUE(merger.Merge(grad).rows.empty());
}

TEST(RowMerger, MergedGradientsDoNotDependOnTheOrderOfRows) {
  // Sums of multiples of 1/8 are exact, so any order must give the same bits.
  std::mt19937 rng(3);
  std::vector<std::pair<uint64_t, float>> entries;
  for (int i = 0; i < 1000; ++i) entries.emplace_back(rng() % 97, static_cast<float>(rng() % 64) / 8.0F);
  std::map<uint64_t, float> first;
  for (int round = 0; round < 5; ++round) {
    std::shuffle(entries.begin(), entries.end(), rng);
    SelectedRows grad;
    float* values = grad.values.Resize<float>({1000, 1});
    for (const auto& [key, value] : entries) {
      grad.rows.push_back(key);
      *values++ = value;
    }
    RowMerger merger;
    const SelectedRows& merged = merger.Merge(grad);
    std::map<uint64_t, float> sums;
    for (size_t i = 0; i < merged.rows.size(); ++i) sums[merged.rows[i]] = merged.values.data<float>()[i];
    if (round == 0) first = sums;
    EXPECT_EQ(sums, first);
  }
}

TEST(SparseTablePush, MergedAndUnmergedGradientsStepAlike) {
  OpRunner runner;
  SparseTable* a = runner.MakeTable("a", 2);
  SparseTable* b = runner.MakeTable("b", 2);
  runner.SetFloats("lr", {1}, {0.5F});
  RowBatch pulled_a;
  RowBatch pulled_b;
  const std::vector<uint64_t> keys = {4, 5};
  ASSERT_TRUE(a->Pull(keys, PullMode::kInsert, &pulled_a).ok());
  ASSERT_TRUE(b->Pull(keys, PullMode::kInsert, &pulled_b).ok());
  const std::vector<float*> rows_a = RowsInMemory(pulled_a);
  const std::vector<float*> rows_b = RowsInMemory(pulled_b);
  for (size_t i = 0; i < 2; ++i) std::copy_n(rows_a[i], 4, rows_b[i]);
  SelectedRows* merged = runner.rows("ga");
  merged->rows = keys;
  merged->table_rows.Take(pulled_a);
  merged->merged = true;
  const std::vector<float> sums = {4, 6, 3, 4};
  std::copy(sums.begin(), sums.end(), merged->values.Resize<float>({2, 2}));
  SelectedRows* unmerged = runner.rows("gb");
  unmerged->rows = {4, 5, 4};
  const std::vector<float> parts = {1, 2, 3, 4, 3, 4};
  std::copy(parts.begin(), parts.end(), unmerged->values.Resize<float>({3, 2}));
  for (const std::string name : {"a", "b"}) {
    ASSERT_TRUE(
        runner
            .Run(MakeOp("sparse_table_push", {{"Table", {name}}, {"Grad", {"g" + name}}, {"LearningRate", {"lr"}}},
                        {{"TableOut", {name}}}))
            .ok());
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(std::vector<float>(rows_a[i], rows_a[i] + 4), std::vector<float>(rows_b[i], rows_b[i] + 4));
    EXPECT_EQ(rows_a[i][2], sums[2 * i] * sums[2 * i]) << "Adagrad's accumulator after one step";
  }
}

// Rows of the table u used to be trained by the rule of t, or rows of t that have their keys.
TEST(SparseTablePush, RefusesTheGradientOfAnotherTable) {
  OpRunner runner;
  SparseTable* t = runner.MakeTable("t", 2);
  SparseTable* u = runner.MakeTable("u", 2);
  runner.SetFloats("lr", {1}, {0.5F});
  const std::vector<uint64_t> ids = {7, 8};
  runner.SetIds("ids", ids);
  runner.SetFloats("out@GRAD", {2, 2}, {1, 1, 1, 1});
  ASSERT_TRUE(
      runner.Run(MakeOp("fused_slots_pool", {{"Ids", {"ids"}}, {"W", {"u"}}}, {{"Out", {"out"}}, {"Rows", {"rows"}}}))
          .ok());
  ASSERT_TRUE(runner
                  .Run(MakeOp("fused_slots_pool_grad",
                              {{"Ids", {"ids"}}, {"W", {"u"}}, {"Rows", {"rows"}}, {"Out@GRAD", {"out@GRAD"}}},
                              {{"W@GRAD", {"pooled"}}}))
                  .ok());
  ASSERT_TRUE(runner
                  .Run(MakeOp("lookup_table_grad", {{"Ids", {"ids"}}, {"W", {"u"}}, {"Out@GRAD", {"out@GRAD"}}},
                              {{"W@GRAD", {"looked_up"}}}))
                  .ok());
  ASSERT_TRUE(runner.Run(MakeOp("sum", {{"X", {"looked_up", "pooled"}}}, {{"Out", {"sum"}}})).ok());
  ASSERT_TRUE(runner.Run(MakeOp("merge_selected_rows", {{"X", {"pooled"}}}, {{"Out", {"merged"}}})).ok());
  const auto push = [&](const std::string& table, const std::string& grad) {
    return runner.Run(MakeOp("sparse_table_push", {{"Table", {table}}, {"Grad", {grad}}, {"LearningRate", {"lr"}}},
                             {{"TableOut", {table}}}));
  };
  for (const std::string grad : {"pooled", "looked_up", "sum", "merged"}) {
    const Status pushed = push("t", grad);
    EXPECT_EQ(pushed.code(), StatusCode::kInvalidConfig);
    EXPECT_EQ(pushed.message(), "Grad \"" + grad +
                                    "\": table \"t\": a gradient for rows of table \"u\" is pushed to it: push it to "
                                    "the table that its lookup reads");
    EXPECT_TRUE(push("u", grad).ok());
  }
  EXPECT_EQ(t->stats().rows, 0);
  EXPECT_EQ(u->stats().rows, 2);
}

TEST(SparseTablePush, OfATableThatCountsTakesNoRateAndWantsToKnowItsExamples) {
  OpRunner runner;
  OpDesc create = MakeOp("create_sparse_table", {}, {{"Out", {"t"}}});
  SetAttr(create, "table", std::string("name: \"t\" accessor { embedx_dim: 2 }"));
  ASSERT_TRUE(runner.Run(create).ok());
  runner.MakeTable("plain", 2);
  runner.SetFloats("lr", {1}, {0.5F});
  const std::vector<uint64_t> keys = {7};
  SelectedRows* grad = runner.rows("g");
  grad->rows = keys;
  std::fill_n(grad->values.Resize<float>({1, 5}), 5, 1.0F);
  const auto push = [](const std::string& table, bool has_rate) {
    OpDesc op = MakeOp("sparse_table_push", {{"Table", {table}}, {"Grad", {"g"}}}, {{"TableOut", {table}}});
    if (has_rate) SetInput(op, "LearningRate", {"lr"});
    return op;
  };
  EXPECT_THAT(runner.Run(push("t", true)).message(), testing::HasSubstr("bind no LearningRate"));
  EXPECT_THAT(runner.Run(push("plain", false)).message(), testing::HasSubstr("LearningRate is not bound"));
  const OpDesc op = push("t", false);
  EXPECT_THAT(runner.Run(op).message(), testing::HasSubstr("nobody says how many examples a batch has"));
  Result<std::unique_ptr<OpKernel>> kernel = runner.Make(op);
  ASSERT_TRUE(kernel.ok());
  RunContext context;
  context.rows = 4;
  ASSERT_TRUE((*kernel)->Run(context).ok());
  RowBatch row;
  SparseTable& table = *runner.scope().Find("t")->Get<std::unique_ptr<SparseTable>>();
  ASSERT_TRUE(table.Pull(keys, PullMode::kReadOnly, &row).ok());
  EXPECT_EQ(row.weights()[0][0], 1);
  EXPECT_FLOAT_EQ(row.weights()[0][2], -0.05F * 4) << "the sum of 4 examples";
}

TEST(Sum, RefusesGradientsOfTwoTables) {
  OpRunner runner;
  runner.MakeTable("t", 2);
  runner.MakeTable("u", 2);
  const std::vector<uint64_t> ids = {7, 8};
  runner.SetIds("ids", ids);
  runner.SetFloats("out@GRAD", {2, 2}, {1, 1, 1, 1});
  for (const std::string table : {"t", "u"}) {
    ASSERT_TRUE(runner
                    .Run(MakeOp("lookup_table_grad", {{"Ids", {"ids"}}, {"W", {table}}, {"Out@GRAD", {"out@GRAD"}}},
                                {{"W@GRAD", {table + "@GRAD"}}}))
                    .ok());
  }
  EXPECT_EQ(runner.Run(MakeOp("sum", {{"X", {"t@GRAD", "u@GRAD"}}}, {{"Out", {"sum"}}})).message(),
            "rows of table \"u\" are added to rows of table \"t\": a gradient belongs to one table");
}

// Two workers train on one table and one matrix: under ThreadSanitizer this shows that all races are in racy.h.
TEST(FusedSlotsPool, TwoWorkersMayShareParameters) {
  for (const UpdateMode mode : {UpdateMode::kHogwild, UpdateMode::kRowLock}) {
    Scope root;
    const auto locks = std::make_unique<RowLocks>();
    FrameOptions options;
    options.update_mode = mode;
    options.row_locks = mode == UpdateMode::kRowLock ? locks.get() : nullptr;
    TableDesc desc;
    desc.set_name("t");
    desc.set_dim(4);
    desc.set_initial_rows(0);
    desc.mutable_optimizer()->mutable_adagrad();
    root.Var("t")->Set(std::move(CreateHashTable(desc, 1)).value());
    root.Var("lr")->GetMutable<Tensor>()->Resize<float>({1})[0] = 0.1F;
    OpRegistry registry;
    RegisterBuiltinOps(registry);
    const auto work = [&](uint64_t worker) {
      Scope scope(&root);
      for (const char* name : {"ids", "out", "rows", "out@GRAD", "t@GRAD"}) scope.Var(name);
      const std::vector<OpDesc> descs = {
          MakeOp("fused_slots_pool", {{"Ids", {"ids"}}, {"W", {"t"}}}, {{"Out", {"out"}}, {"Rows", {"rows"}}}),
          MakeOp("fused_slots_pool_grad",
                 {{"Ids", {"ids"}}, {"W", {"t"}}, {"Rows", {"rows"}}, {"Out@GRAD", {"out@GRAD"}}},
                 {{"W@GRAD", {"t@GRAD"}}}),
          MakeOp("sparse_table_push", {{"Table", {"t"}}, {"Grad", {"t@GRAD"}}, {"LearningRate", {"lr"}}},
                 {{"TableOut", {"t"}}})};
      std::vector<std::unique_ptr<OpKernel>> kernels;
      for (const OpDesc& op : descs) {
        const OpView view(op, *registry.Find(op.type()));
        KernelContext context(view, scope, options);
        kernels.push_back(std::move(view.info().kernels[0].create(context)).value());
      }
      std::mt19937_64 rng(worker);
      float* grad = scope.Find("out@GRAD")->GetMutable<Tensor>()->Resize<float>({50, 4});
      std::fill_n(grad, 200, 0.5F);
      std::vector<uint64_t> ids(50);
      for (int batch = 0; batch < 60; ++batch) {
        for (uint64_t& id : ids) id = rng() % (10 + static_cast<uint64_t>(batch) * 20);
        scope.Find("ids")->GetMutable<Tensor>()->View(DType::kInt64, {50, 1}, ids.data());
        for (const auto& kernel : kernels) ASSERT_TRUE(kernel->Run({}).ok());
      }
    };
    {
      const std::jthread first(work, 1);
      const std::jthread second(work, 2);
    }
    EXPECT_GT(root.Find("t")->Get<std::unique_ptr<SparseTable>>()->stats().rows, 500);
  }
}

}  // namespace
}  // namespace millrace
