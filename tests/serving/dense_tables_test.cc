#include "serving/dense_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model.pb.h"
#include "program/op_registry.h"
#include "program/var_meta.h"
#include "rows_in_memory.h"
#include "runtime/tensor.h"
#include "table/hash_table.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OpDesc Lookup(const std::string& slot, int64_t salt) {
  OpDesc op;
  op.set_type("lookup_table");
  SetInput(op, "Ids", {slot});
  SetInput(op, "W", {"t"});
  SetOutput(op, "Out", {slot + ".rows"});
  SetAttr(op, "slot_salt", salt);
  return op;
}

ProgramDesc Program(const std::vector<OpDesc>& ops) {
  ProgramDesc program;
  BlockDesc* block = program.add_blocks();
  VarDesc* table = block->add_vars();
  table->set_name("t");
  table->set_persistable(true);
  table->mutable_type()->set_type(VarType::SPARSE_TABLE);
  auto* tensor = table->mutable_type()->mutable_lod_tensor()->mutable_tensor();
  tensor->set_data_type(VarType::FP32);
  tensor->add_dims(-1);
  tensor->add_dims(2);
  for (const OpDesc& op : ops) *block->add_ops() = op;
  return program;
}

/// A table in `root` whose rows of `keys` hold their place in the list.
void MakeTable(const std::vector<uint64_t>& keys, Scope& root) {
  TableDesc desc;
  desc.set_name("t");
  desc.set_dim(2);
  desc.mutable_init()->set_constant(-1);
  desc.mutable_optimizer()->mutable_sgd();
  auto table = CreateHashTable(desc, 1);
  ASSERT_TRUE(table.ok()) << table.status().message();
  RowBatch pulled;
  ASSERT_TRUE((*table)->Pull(keys, PullMode::kInsert, &pulled).ok());
  const std::vector<float*> rows = RowsInMemory(pulled);
  for (size_t i = 0; i < keys.size(); ++i) rows[i][0] = rows[i][1] = static_cast<float>(i);
  root.Var("t")->Set<std::unique_ptr<SparseTable>>(std::move(table).value());
}

std::vector<float> FirstColumn(const Scope& scope, const std::string& name) {
  const Tensor& tensor = scope.Find(name)->Get<Tensor>();
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.dims()[0]; ++i) values.push_back(tensor.data<float>()[2 * i]);
  return values;
}

TEST(DenseTablesTest, RowsOfIdsAndOfNewOnes) {
  ProgramDesc program = Program({Lookup("a", 0), Lookup("b", 0)});
  const auto tables = ReplaceTables(4, program);
  ASSERT_TRUE(tables.ok()) << tables.status().message();
  ASSERT_EQ(tables->size(), 1U);
  EXPECT_THAT(FindVar(program, "t")->type().lod_tensor().tensor().dims(), ElementsAre(4, 2));
  EXPECT_EQ(FindVar(program, "t")->type().type(), VarType::LOD_TENSOR);
  Scope root;
  MakeTable({3, 1}, root);
  Scope dense(&root);
  ASSERT_TRUE(FillDenseTables(*tables, 4, root, dense).ok());
  EXPECT_THAT(FirstColumn(dense, "t"), ElementsAre(-1, 1, -1, 0));
}

TEST(DenseTablesTest, SlotsWithRowsOfTheirOwn) {
  ProgramDesc program = Program({Lookup("a", 77), Lookup("b", 99)});
  const auto tables = ReplaceTables(3, program);
  ASSERT_TRUE(tables.ok()) << tables.status().message();
  EXPECT_EQ(FindVar(program, "t"), nullptr);
  EXPECT_THAT(InputArguments(program.blocks(0).ops(1), "W"), ElementsAre("t.b"));
  Scope root;
  MakeTable({SlotKey(2, 77), SlotKey(2, 99)}, root);
  Scope dense(&root);
  ASSERT_TRUE(FillDenseTables(*tables, 3, root, dense).ok());
  EXPECT_THAT(FirstColumn(dense, "t.a"), ElementsAre(-1, -1, 0));
  EXPECT_THAT(FirstColumn(dense, "t.b"), ElementsAre(-1, -1, 1));
}

TEST(DenseTablesTest, RefusesToLoseRows) {
  ProgramDesc program = Program({Lookup("a", 0)});
  const auto tables = ReplaceTables(3, program);
  Scope root;
  MakeTable({2, 3, 1U << 20}, root);
  Scope dense(&root);
  const Status status = FillDenseTables(*tables, 3, root, dense);
  EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(status.message(), HasSubstr("table \"t\" has 3 rows, and 2 of them are of ids that are not below"));
}

TEST(DenseTablesTest, NeedsABound) {
  ProgramDesc program = Program({Lookup("a", 0)});
  const Status status = ReplaceTables(0, program).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(status.message(), HasSubstr("table \"t\" grows"));
}

}  // namespace
}  // namespace millrace
