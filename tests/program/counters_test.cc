#include "program/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/block_builder.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CountersTest : public testing::Test {
 protected:
  CountersTest() { program_.add_blocks(); }

  void Persistable(const std::string& name, VarType::Type type = VarType::FP32) {
    VarDesc* var = program_.mutable_blocks(0)->add_vars();
    var->set_name(name);
    var->set_persistable(true);
    var->mutable_type()->set_type(VarType::LOD_TENSOR);
    var->mutable_type()->mutable_lod_tensor()->mutable_tensor()->set_data_type(type);
  }
  OpDesc& Op(const std::string& type, const std::vector<std::string>& x, const std::string& out) {
    OpDesc* op = program_.mutable_blocks(0)->add_ops();
    op->set_type(type);
    SetInput(*op, "X", x);
    SetOutput(*op, "Out", {out});
    return *op;
  }

  ProgramDesc program_;
};

TEST_F(CountersTest, AreVariablesThatBecomeThemselvesAndMore) {
  for (const char* name : {"added", "summed", "incremented", "shifted", "mean", "copied", "scaled", "w@GRAD@MERGED"}) {
    Persistable(name);
  }
  SetInput(Op("elementwise_add", {"x"}, "t"), "Y", {"added"});
  Op("assign", {"t"}, "added");
  Op("sum", {"x", "summed"}, "summed");
  Op("increment", {"incremented"}, "incremented");
  SetAttr(Op("scale", {"shifted"}, "s"), "bias", 1.0f);
  Op("assign", {"s"}, "shifted");
  SetAttr(Op("scale", {"scaled"}, "scaled"), "scale", 0.9f);
  SetInput(Op("elementwise_mul", {"mean"}, "decayed"), "Y", {"momentum"});
  SetInput(Op("elementwise_add", {"decayed"}, "next"), "Y", {"x"});
  Op("assign", {"next"}, "mean");
  Op("assign", {"x"}, "copied");
  Op("sum", {"w@GRAD@MERGED", "w@GRAD"}, "w@GRAD@MERGED");
  EXPECT_THAT(CountersOf(program_), ElementsAre("added", "summed", "incremented", "shifted"));
}

TEST_F(CountersTest, AreTheCountsOfAnAucThatForgetsNoBatch) {
  for (const int64_t steps : {0, 1}) {
    const std::string of = std::to_string(steps);
    OpDesc& auc = Op("auc", {"p"}, "unused");
    SetAttr(auc, "slide_steps", steps);
    for (const std::string sign : {"Pos", "Neg"}) {
      Persistable(sign + of, VarType::INT64);
      SetInput(auc, "Stat" + sign, {sign + of});
      SetOutput(auc, "Stat" + sign + "Out", {sign + of});
    }
  }
  EXPECT_THAT(CountersOf(program_), ElementsAre("Pos0", "Neg0"));
  EXPECT_THAT(UnreadCountersOf(program_), ElementsAre("Pos0", "Neg0"));
}

TEST_F(CountersTest, AreFollowedThroughSums) {
  for (const char* name : {"twice", "less", "taken_off"}) Persistable(name);
  SetInput(Op("elementwise_add", {"twice"}, "t0"), "Y", {"a"});
  SetInput(Op("elementwise_add", {"b"}, "t1"), "Y", {"t0"});
  Op("assign", {"t1"}, "twice");
  SetInput(Op("elementwise_sub", {"less"}, "t2"), "Y", {"a"});
  Op("assign", {"t2"}, "less");
  SetInput(Op("elementwise_sub", {"a"}, "t3"), "Y", {"taken_off"});
  Op("assign", {"t3"}, "taken_off");
  EXPECT_THAT(CountersOf(program_), ElementsAre("twice", "less"));
  EXPECT_THAT(UnreadCountersOf(program_), ElementsAre("twice", "less"));
}

// Four threads counted to 4 in a variable that each batch had begun at 0.
TEST_F(CountersTest, WhatABatchBeginsAnewIsNone) {
  Persistable("of_batch");
  Op("fill_constant", {}, "zero");
  Op("assign", {"zero"}, "of_batch");
  Op("increment", {"of_batch"}, "of_batch");
  EXPECT_THAT(CountersOf(program_), IsEmpty());
}

TEST_F(CountersTest, AnInferenceCountsNoStepsAndNothingOfGradients) {
  for (const char* name : {"rows", "steps", "norms"}) Persistable(name);
  Op("sum", {"rows", "x"}, "rows");
  SetAttr(Op("increment", {"steps"}, "steps"), "op_role", int64_t{16});
  Op("square", {"w@GRAD"}, "squares");
  Op("reduce_sum", {"squares"}, "norm");
  Op("sum", {"norms", "norm"}, "norms");
  EXPECT_THAT(ForwardCountersOf(program_), ElementsAre("rows"));
  EXPECT_EQ(CountersOf(program_).size(), 3U);
}

TEST_F(CountersTest, WhatIsReadIsNotForWorkersToCountForThemselves) {
  for (const char* name : {"alone", "read", "sum_is_read"}) Persistable(name);
  Persistable("of_32_bits", VarType::INT32);
  Op("sum", {"alone", "x"}, "t0");
  Op("assign", {"t0"}, "alone");
  Op("increment", {"read"}, "read");
  Op("exp", {"read"}, "rate");
  Op("sum", {"sum_is_read", "x"}, "t1");
  Op("assign", {"t1"}, "sum_is_read");
  Op("log", {"t1"}, "shown");
  Op("increment", {"of_32_bits"}, "of_32_bits");
  EXPECT_THAT(UnreadCountersOf(program_), ElementsAre("alone"));
  EXPECT_EQ(CountersOf(program_).size(), 4U);
  EXPECT_THAT(CountersOf(ProgramDesc()), IsEmpty());
}

}  // namespace
}  // namespace millrace
