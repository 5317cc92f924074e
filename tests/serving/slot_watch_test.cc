#include "serving/slot_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "allocation_counter.h"
#include "model.pb.h"
#include "ops/registry.h"
#include "program/op_registry.h"
#include "table/hash_table.h"

namespace millrace {
namespace {

VarDesc* Declare(const std::string& name, int64_t width, VarType::Type type, BlockDesc* block) {
  VarDesc* const var = block->add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(VarType::LOD_TENSOR);
  auto* const tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
  tensor->set_data_type(type);
  tensor->add_dims(-1);
  tensor->add_dims(width);
  return var;
}

/// A model that looks slot "a" up in table "t", which has rows of the ids 1 to 9.
class SlotWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    ProgramDesc program;
    BlockDesc* const block = program.add_blocks();
    block->set_idx(0);
    block->set_parent_idx(-1);
    Declare("a", 1, VarType::INT64, block)->mutable_type()->mutable_lod_tensor()->set_lod_level(1);
    Declare("y", 2, VarType::FP32, block);
    VarDesc* const table = Declare("t", 2, VarType::FP32, block);
    table->set_persistable(true);
    table->mutable_type()->set_type(VarType::SPARSE_TABLE);
    OpDesc* const op = block->add_ops();
    op->set_type("lookup_table");
    SetInput(*op, "Ids", {"a"});
    SetInput(*op, "W", {"t"});
    SetOutput(*op, "Out", {"y"});
    SetAttr(*op, "slot_salt", int64_t{7});
    CompileOptions options;
    options.fetches = {"y"};
    options.forward_only = true;
    auto compiled = Executable::Compile(std::make_shared<const ProgramDesc>(program), AllOps(), options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    executable_ = std::move(compiled).value();

    TableDesc desc;
    desc.set_name("t");
    desc.set_dim(2);
    desc.mutable_optimizer()->mutable_sgd();
    auto made = CreateHashTable(desc, 1);
    ASSERT_TRUE(made.ok()) << made.status().message();
    std::vector<uint64_t> keys;
    for (uint64_t id = 1; id < 10; ++id) keys.push_back(SlotKey(id, 7));
    RowBatch pulled;
    ASSERT_TRUE((*made)->Pull(keys, PullMode::kInsert, &pulled).ok());
    root_.Var("t")->Set<std::unique_ptr<SparseTable>>(std::move(made).value());

    Slot* const slot = desc_.mutable_multi_slot_desc()->add_slots();
    slot->set_name("a");
    slot->set_type("uint64");
    slot->set_is_used(true);
    auto schema = SlotSchema::Create(desc_);
    ASSERT_TRUE(schema.ok()) << schema.status().message();
    schema_ = std::make_unique<SlotSchema>(std::move(schema).value());
  }

  SlotWatch Watch() { return SlotWatch::Create(*executable_, desc_, *schema_, root_, true).value(); }

  /// `rows` rows with the ids `ids` (none: no value) in turns, of lines from `line` on.
  SlotBatch Rows(int rows, const std::vector<std::vector<uint64_t>>& ids, uint64_t line) {
    SlotBatch batch(*schema_);
    SlotColumn& column = batch.column(0);
    column.offsets.assign(1, 0);
    for (int row = 0; row < rows; ++row) {
      for (const uint64_t id : ids[static_cast<size_t>(row) % ids.size()]) column.ids.push_back(id);
      column.offsets.push_back(static_cast<uint32_t>(column.ids.size()));
      batch.mutable_origins().push_back({0, line + static_cast<uint64_t>(row)});
    }
    batch.set_rows(rows);
    return batch;
  }

  DataFeedDesc desc_;
  std::unique_ptr<SlotSchema> schema_;
  std::unique_ptr<const Executable> executable_;
  Scope root_;
};

TEST_F(SlotWatchTest, CountsIdsWithoutARowAndRowsWithoutAValue) {
  SlotWatch watch = Watch();
  ASSERT_TRUE(watch.Look(Rows(100, {{1, 2}, {3, 99}, {}, {0}}, 2)).ok());
  SlotShares shares;
  ASSERT_TRUE(watch.AddTo(&shares).ok());
  EXPECT_EQ(shares["a"], (SlotShare{100, 25, 125, 50}));
  ASSERT_TRUE(watch.AddTo(&shares).ok());
  EXPECT_EQ(shares["a"], (SlotShare{100, 25, 125, 50})) << "nothing was seen since";
}

TEST_F(SlotWatchTest, AnyNumberOfReadersComesToTheSameCounts) {
  const std::vector<std::vector<uint64_t>> ids = {{1}, {2, 50}, {3}, {}, {60}};
  SlotWatch one = Watch();
  SlotShares whole;
  ASSERT_TRUE(one.Look(Rows(20000, ids, 1)).ok());
  ASSERT_TRUE(one.AddTo(&whole).ok());
  SlotShares parts;
  for (uint64_t part = 0; part < 4; ++part) {
    SlotWatch watch = Watch();
    ASSERT_TRUE(watch.Look(Rows(5000, ids, 1 + part * 5000)).ok());
    ASSERT_TRUE(watch.AddTo(&parts).ok());
  }
  EXPECT_EQ(parts["a"], whole["a"]);
  const SlotShare& share = whole["a"];
  EXPECT_NEAR(static_cast<double>(share.rows), 20000, 4000) << "rows that are looked at stand for the others";
  EXPECT_NEAR(static_cast<double>(share.unknown) / static_cast<double>(share.ids), 0.4, 0.05);
}

TEST_F(SlotWatchTest, AllocatesNothingInAWarmBatch) {
  SlotWatch watch = Watch();
  const SlotBatch batch = Rows(1000, {{1, 2}, {77, 99, 100}, {}}, 1);
  const AllocationCounter counter;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(watch.Look(batch).ok());
  EXPECT_EQ(counter.count(), 0);
}

}  // namespace
}  // namespace millrace
