#include "serving/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/op_registry.h"

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

TEST(PruneTest, ATargetThatNothingComputesIsAnError) {
  const Result<ProgramDesc> pruned = PruneProgram(Program(), {"nothing"}, {});
  ASSERT_FALSE(pruned.ok());
  EXPECT_EQ(pruned.status().code(), StatusCode::kInvalidConfig);
}

}  // namespace
}  // namespace millrace
