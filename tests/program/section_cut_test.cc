#include "program/section_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/block_builder.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Builder {
 public:
  Builder() { program_.add_blocks(); }

  Builder& Op(const std::string& type, const std::vector<std::string>& reads, const std::vector<std::string>& writes,
              OpRole role = OpRole::kForward) {
    OpDesc* op = program_.mutable_blocks(0)->add_ops();
    op->set_type(type);
    SetInput(*op, "X", reads);
    SetOutput(*op, "Out", writes);
    SetAttr(*op, "op_role", static_cast<int64_t>(role));
    return *this;
  }
  Builder& Parameter(const std::string& name) {
    VarDesc* var = program_.mutable_blocks(0)->add_vars();
    var->set_name(name);
    var->set_persistable(true);
    return *this;
  }
  const ProgramDesc& program() const { return program_; }

 private:
  ProgramDesc program_;
};

/// x -> a -> h -> b -> loss, each with a parameter, and its training.
Builder TwoLayers() {
  Builder builder;
  builder.Parameter("wa").Parameter("wb").Parameter("rate");
  builder.Op("schedule", {}, {"lr"}).Op("a", {"x", "wa"}, {"h"}).Op("b", {"h", "wb"}, {"loss"});
  builder.Op("one", {}, {"loss@GRAD"}, OpRole::kLossGradient);
  builder.Op("b_grad", {"h", "wb", "loss@GRAD"}, {"h@GRAD", "wb@GRAD"}, OpRole::kBackward);
  builder.Op("a_grad", {"x", "wa", "h@GRAD"}, {"wa@GRAD"}, OpRole::kBackward);
  builder.Op("sgd_b", {"wb", "wb@GRAD", "lr"}, {"wb"}, OpRole::kOptimize);
  builder.Op("sgd_a", {"wa", "wa@GRAD", "lr"}, {"wa"}, OpRole::kOptimize);
  return builder;
}

std::vector<std::string> Types(const ProgramDesc& program, const std::vector<SectionPart>& parts) {
  std::vector<std::string> texts;
  int op = 0;
  for (const SectionPart& part : parts) {
    std::string text = std::to_string(part.section) + ":";
    for (int i = 0; i < part.ops; ++i) text += " " + program.blocks(0).ops(op++).type();
    texts.push_back(text);
  }
  EXPECT_EQ(op, program.blocks(0).ops_size());
  return texts;
}

TEST(SectionCut, GradientsAndUpdatesFollowTheForwardOperators) {
  const Result<SectionCut> cut = CutIntoSections(TwoLayers().program(), OpRegistry(), {{"h"}});
  ASSERT_TRUE(cut.ok()) << cut.status().ToString();
  EXPECT_THAT(Types(cut->step, cut->step_parts), ElementsAre("0: a", "1: b", "1: one b_grad", "0: a_grad"));
  EXPECT_THAT(Types(cut->update, cut->update_parts), ElementsAre("1: schedule sgd_b", "0: sgd_a"));
  EXPECT_THAT(cut->gradients, ElementsAre(ElementsAre("wa@GRAD"), ElementsAre("wb@GRAD")));
}

TEST(SectionCut, WithoutCutsThereIsOneSection) {
  const Result<SectionCut> cut = CutIntoSections(TwoLayers().program(), OpRegistry(), {});
  ASSERT_TRUE(cut.ok()) << cut.status().ToString();
  EXPECT_THAT(Types(cut->step, cut->step_parts), ElementsAre("0: a b", "0: one b_grad a_grad"));
  EXPECT_THAT(Types(cut->update, cut->update_parts), ElementsAre("0: schedule sgd_b sgd_a"));
}

TEST(SectionCut, AParameterOfTwoSectionsIsUpdatedByTheFirst) {
  Builder builder;
  builder.Parameter("w");
  builder.Op("a", {"x", "w"}, {"h"}).Op("b", {"h", "w"}, {"loss"});
  builder.Op("one", {}, {"loss@GRAD"}, OpRole::kLossGradient);
  builder.Op("b_grad", {"h", "w", "loss@GRAD"}, {"h@GRAD", "w@GRAD@RENAME@block0@0"}, OpRole::kBackward);
  builder.Op("a_grad", {"x", "w", "h@GRAD"}, {"w@GRAD@RENAME@block0@1"}, OpRole::kBackward);
  builder.Op("sum", {"w@GRAD@RENAME@block0@0", "w@GRAD@RENAME@block0@1"}, {"w@GRAD"}, OpRole::kBackward);
  builder.Op("sgd", {"w", "w@GRAD"}, {"w"}, OpRole::kOptimize);
  const Result<SectionCut> cut = CutIntoSections(builder.program(), OpRegistry(), {{"h"}});
  ASSERT_TRUE(cut.ok()) << cut.status().ToString();
  EXPECT_THAT(Types(cut->step, cut->step_parts), ElementsAre("0: a", "1: b", "1: one b_grad", "0: a_grad sum"));
  EXPECT_THAT(Types(cut->update, cut->update_parts), ElementsAre("1:", "0: sgd"));
}

TEST(SectionCut, AClipByAllGradientsWaitsForTheFirstSection) {
  Builder builder = TwoLayers();
  builder.Op("norm", {"wa@GRAD", "wb@GRAD"}, {"norm"}, OpRole::kOptimize);
  builder.Op("again_b", {"wb", "norm"}, {"wb"}, OpRole::kOptimize);
  const Result<SectionCut> cut = CutIntoSections(builder.program(), OpRegistry(), {{"h"}});
  ASSERT_TRUE(cut.ok()) << cut.status().ToString();
  EXPECT_THAT(Types(cut->update, cut->update_parts), ElementsAre("1: schedule sgd_b", "0: sgd_a norm again_b"));
}

TEST(SectionCut, NamesWhatIsWrong) {
  const auto error = [](const Builder& builder, const std::vector<std::vector<std::string>>& cuts) {
    return CutIntoSections(builder.program(), OpRegistry(), cuts).status().message();
  };
  EXPECT_THAT(error(TwoLayers(), {{"hh"}}), HasSubstr("section_config[0]: section_out_var_names: no operator of the "
                                                      "forward part computes \"hh\"; did you mean \"h\"?"));
  EXPECT_THAT(error(TwoLayers(), {{"h"}, {"h"}}), HasSubstr("section_config[1]: no operator is left for it"));
  Builder reads_forward = TwoLayers();
  reads_forward.Op("odd", {"h"}, {"wa"}, OpRole::kOptimize);
  EXPECT_THAT(error(reads_forward, {{"h"}}), HasSubstr("op[8] odd reads \"h\", which is neither a gradient nor a"));
}

}  // namespace
}  // namespace millrace
