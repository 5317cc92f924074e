#include "table/row_optimizer.h"

#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "model.pb.h"
#include "program/optimizer_rule.h"

namespace millrace {
namespace {

/// A rule either leaves rows without a gradient alone, and tables that grow have it, or says why they cannot.
TEST(RowOptimizer, EveryRuleIsThereOrSaysWhyNot) {
  const auto* rules = OptimizerDesc::descriptor()->FindOneofByName("rule");
  for (int i = 0; i < rules->field_count(); ++i) {
    OptimizerDesc desc;
    desc.GetReflection()->MutableMessage(&desc, rules->field(i));
    const Result<std::unique_ptr<RowOptimizer>> made = MakeRowOptimizer(desc, 2);
    const std::string why = WhyNotForGrowingTable(desc);
    if (why.empty()) {
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      EXPECT_THAT((*made)->Describe(), testing::StartsWith(rules->field(i)->name()));
    } else {
      EXPECT_EQ(made.status().message(), why);
    }
  }
}

TEST(RowOptimizer, StateStartsAsTheRuleSays) {
  OptimizerDesc desc;
  desc.mutable_adagrad()->set_initial_accumulator(0.5F);
  const Result<std::unique_ptr<RowOptimizer>> made = MakeRowOptimizer(desc, 3);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  std::vector<float> state(static_cast<size_t>((*made)->state_floats()));
  (*made)->InitState(state.data());
  EXPECT_THAT(state, testing::ElementsAre(0.5F, 0.5F, 0.5F));
  EXPECT_EQ((*made)->Describe(), "adagrad epsilon=1e-06 initial_accumulator=0.5");
}

TEST(RowOptimizer, PenaltiesAreAddedToTheGradientsOfTheRowsThatAreUpdated) {
  OptimizerDesc desc;
  desc.mutable_sgd();
  desc.mutable_regularization()->set_l1(0.5F);
  desc.mutable_regularization()->set_l2(0.25F);
  const Result<std::unique_ptr<RowOptimizer>> made = MakeRowOptimizer(desc, 3);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  float row[3] = {2, -4, 0};
  float other[3] = {1, 1, 1};
  float* rows[2] = {row, other};
  const float gradients[6] = {1, 1, 1, 0, 0, 0};
  RowStep step;
  step.lr = 0.5F;
  (*made)->Update(racy::Best(), step, rows, gradients, 2);
  // w - lr (g + 0.5 sign(w) + 0.25 w)
  EXPECT_THAT(row, testing::ElementsAre(2 - 0.5F * (1 + 0.5F + 0.5F), -4 - 0.5F * (1 - 0.5F - 1), -0.5F));
  EXPECT_THAT(other, testing::ElementsAre(0.625F, 0.625F, 0.625F));
  EXPECT_EQ((*made)->Describe(), "sgd") << "a run that goes on takes other penalties";
}

TEST(RowOptimizer, PenaltiesLeaveTheStateToTheRule) {
  OptimizerDesc desc;
  desc.mutable_adagrad()->set_initial_accumulator(0.5F);
  desc.mutable_regularization()->set_l2(0.1F);
  const Result<std::unique_ptr<RowOptimizer>> made = MakeRowOptimizer(desc, 2);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  std::vector<float> state(static_cast<size_t>((*made)->state_floats()));
  (*made)->InitState(state.data());
  EXPECT_THAT(state, testing::ElementsAre(0.5F, 0.5F));
}

}  // namespace
}  // namespace millrace
