#include "serving/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/op_registry.h"

namespace millrace {
namespace {

using testing::ElementsAre;

OpDesc Op(const std::string& type, const std::string& in, const std::vector<std::string>& from, const std::string& out,
          const std::string& to) {
  OpDesc op;
  op.set_type(type);
  SetInput(op, in, from);
  SetOutput(op, out, {to});
  return op;
}

// ids -> pooled; pooled, dense -> both -> logits -> (probabilities, loss with label)
ProgramDesc Program() {
  ProgramDesc program;
  BlockDesc* block = program.add_blocks();
  for (const char* name : {"ids", "dense", "label", "table", "pooled", "both", "logits", "y", "loss", "extra"}) {
    VarDesc* var = block->add_vars();
    var->set_name(name);
    var->set_persistable(std::string(name) == "table");
  }
  *block->add_ops() = Op("lookup_table", "Ids", {"ids", "table"}, "Out", "pooled");
  *block->add_ops() = Op("concat", "X", {"pooled", "dense"}, "Out", "both");
  *block->add_ops() = Op("scale", "X", {"both"}, "Out", "logits");
  OpDesc loss = Op("softmax_with_cross_entropy", "Logits", {"logits"}, "Softmax", "y");
  SetInput(loss, "Label", {"label"});
  SetOutput(loss, "Loss", {"loss"});
  *block->add_ops() = loss;
  *block->add_ops() = Op("scale", "X", {"y"}, "Out", "extra");
  return program;
}

std::vector<std::string> Types(const ProgramDesc& program) {
  std::vector<std::string> types;
  for (const OpDesc& op : program.blocks(0).ops()) types.push_back(op.type());
  return types;
}

TEST(PruneTest, KeepsWhatThePredictionNeedsAndNoLabel) {
  const Result<ProgramDesc> pruned = PruneProgram(Program(), {"y"}, {});
  ASSERT_TRUE(pruned.ok());
  EXPECT_THAT(Types(*pruned), ElementsAre("lookup_table", "concat", "scale", "softmax"));
  EXPECT_THAT(FedVariables(*pruned), ElementsAre("ids", "dense"));
  EXPECT_EQ(pruned->blocks(0).vars_size(), 7);
}

TEST(PruneTest, GivenVariablesAreFed) {
  const Result<ProgramDesc> pruned = PruneProgram(Program(), {"y"}, {"pooled"});
  ASSERT_TRUE(pruned.ok());
  EXPECT_THAT(Types(*pruned), ElementsAre("concat", "scale", "softmax"));
  EXPECT_THAT(FedVariables(*pruned), ElementsAre("dense", "pooled"));
}

TEST(PruneTest, TheLossKeepsItsOperator) {
  EXPECT_THAT(Types(*PruneProgram(Program(), {"loss"}, {})),
              ElementsAre("lookup_table", "concat", "scale", "softmax_with_cross_entropy"));
}

// y = branch(x), where the block reads a table of the outer block and has a block within it.
TEST(PruneTest, OperatorsKeepTheirBlocks) {
  ProgramDesc program;
  for (int i = 0; i < 4; ++i) program.add_blocks()->set_idx(i);
  for (const char* name : {"x", "on", "table", "other", "y"}) program.mutable_blocks(0)->add_vars()->set_name(name);
  program.mutable_blocks(3)->add_vars()->set_name("inside");
  const auto branch = [](int block, const std::string& to) {
    OpDesc op = Op("conditional_block", "Cond", {"on"}, "Out", to);
    OpDesc::Attr* attr = op.add_attrs();
    attr->set_name("sub_block");
    attr->set_type(BLOCK);
    attr->set_block_idx(block);
    return op;
  };
  *program.mutable_blocks(0)->add_ops() = branch(1, "other");
  *program.mutable_blocks(0)->add_ops() = branch(3, "y");
  *program.mutable_blocks(1)->add_ops() = Op("scale", "X", {"x"}, "Out", "other");
  *program.mutable_blocks(2)->add_ops() = Op("lookup_table", "W", {"table", "x"}, "Out", "inside");
  *program.mutable_blocks(3)->add_ops() = branch(2, "inside");
  *program.mutable_blocks(3)->add_ops() = Op("scale", "X", {"inside"}, "Out", "y");
  const Result<ProgramDesc> pruned = PruneProgram(program, {"y"}, {});
  ASSERT_TRUE(pruned.ok());
  ASSERT_EQ(pruned->blocks_size(), 3);
  EXPECT_EQ(pruned->blocks(0).ops(0).attrs(0).block_idx(), 1);
  EXPECT_EQ(pruned->blocks(1).ops(0).attrs(0).block_idx(), 2);
  EXPECT_EQ(pruned->blocks(1).parent_idx(), 0);
  EXPECT_EQ(pruned->blocks(2).parent_idx(), 1);
  EXPECT_EQ(pruned->blocks(2).ops(0).type(), "lookup_table");
  std::vector<std::string> declared;
  for (const VarDesc& var : pruned->blocks(0).vars()) declared.push_back(var.name());
  EXPECT_THAT(declared, ElementsAre("x", "on", "table", "y"));
}

TEST(PruneTest, ATargetThatNothingComputesIsAnError) {
  const Result<ProgramDesc> pruned = PruneProgram(Program(), {"nothing"}, {});
  ASSERT_FALSE(pruned.ok());
  EXPECT_EQ(pruned.status().code(), StatusCode::kInvalidConfig);
}

}  // namespace
}  // namespace millrace
