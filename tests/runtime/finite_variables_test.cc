#include "runtime/finite_variables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "model.pb.h"
#include "program/op_registry.h"
#include "rows_in_memory.h"
#include "runtime/tensor.h"
#include "table/hash_table.h"

namespace millrace {
namespace {

/// A program that writes "w", "state" and "passing", and only reads "given"; all but "passing" are persistable.
class FiniteVariables : public testing::Test {
 protected:
  FiniteVariables() {
    BlockDesc* block = program_.add_blocks();
    for (const char* name : {"w", "state", "passing", "given"}) {
      VarDesc* var = block->add_vars();
      var->set_name(name);
      var->set_persistable(std::string(name) != "passing");
      var->mutable_type()->set_type(VarType::LOD_TENSOR);
      std::fill_n(Values(name), 6, 1.0F);
    }
    VarDesc* table = block->add_vars();
    table->set_name("t");
    table->set_persistable(true);
    table->mutable_type()->set_type(VarType::SPARSE_TABLE);
    OpDesc* op = block->add_ops();
    op->set_type("adagrad");
    SetInput(*op, "Given", {"given"});
    SetOutput(*op, "Out", {"w", "state", "passing"});
    TableDesc desc;
    desc.set_name("t");
    desc.set_dim(2);
    desc.mutable_optimizer()->mutable_adagrad();
    auto made = CreateHashTable(desc, 1);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    table_ = made->get();
    *root_.Var("t")->GetMutable<std::unique_ptr<SparseTable>>() = std::move(*made);
    RowBatch pulled;
    EXPECT_TRUE(table_->Pull(std::vector<uint64_t>{9, 4, 7}, PullMode::kInsert, &pulled).ok());
    rows_ = RowsInMemory(pulled);
  }
  float* Values(const std::string& name) { return root_.Var(name)->GetMutable<Tensor>()->Resize<float>({2, 3}); }
  float* Set(const std::string& name) { return root_.Var(name)->GetMutable<Tensor>()->mutable_data<float>(); }

  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ProgramDesc program_;
  Scope root_;
  SparseTable* table_ = nullptr;
  std::vector<float*> rows_;
};

TEST_F(FiniteVariables, AreThoseThatAreTrainedParametersStateAndRows) {
  Set("passing")[0] = kNan;
  Set("given")[0] = -kInfinity;
  const Status sound = CheckFiniteVariables(program_, root_);
  EXPECT_TRUE(sound.ok()) << sound.ToString();
}

TEST_F(FiniteVariables, AreNamedWithTheFirstThatIsNot) {
  Set("w")[4] = kNan;
  Set("state")[1] = kInfinity;
  Set("state")[2] = -kNan;
  rows_[0][3] = kInfinity;  // of key 9, in the optimizer's state
  rows_[2][0] = kNan;       // of key 7
  EXPECT_EQ(CheckFiniteVariables(program_, root_).message(),
            "there are NaN or infinite values in what was trained:\n"
            "  \"w\" [2, 3]: 1 of 6 values, the first is number 4 (nan)\n"
            "  \"state\" [2, 3]: 2 of 6 values, the first is number 1 (inf)\n"
            "  \"t\": 2 of 3 rows, the first is that of key 7");
}

TEST_F(FiniteVariables, AreFloat64Too) {
  root_.Var("w")->GetMutable<Tensor>()->Resize<double>({2})[0] = 1;
  root_.Var("w")->GetMutable<Tensor>()->mutable_data<double>()[1] = -kInfinity;
  EXPECT_EQ(CheckFiniteVariables(program_, root_).message(),
            "there are NaN or infinite values in what was trained:\n"
            "  \"w\" [2]: 1 of 2 values, the first is number 1 (-inf)");
}

}  // namespace
}  // namespace millrace
