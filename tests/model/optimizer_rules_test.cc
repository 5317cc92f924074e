// The schema of OptimizerDesc is the list of optimizers: every rule in it can be checked, lowered and updated by.
#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "model.pb.h"
#include "ops/builtin_ops.h"
#include "program/field_traits.h"
#include "program/op_registry.h"
#include "program/optimizer_rule.h"

namespace millrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::IsEmpty;

/// Those of Millrace: custom is whatever a plugin brings.
std::vector<const FieldDescriptor*> Rules() {
  const auto* rules = OptimizerDesc::descriptor()->FindOneofByName("rule");
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < rules->field_count(); ++i) {
    if (rules->field(i)->name() != "custom") fields.push_back(rules->field(i));
  }
  return fields;
}

std::vector<const FieldDescriptor*> Settings(const FieldDescriptor& rule) {
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < rule.message_type()->field_count(); ++i) fields.push_back(rule.message_type()->field(i));
  return fields;
}

const OpRegistry& Operators() {
  static const auto* registry = [] {
    auto* made = new OpRegistry;
    RegisterBuiltinOps(*made);
    return made;
  }();
  return *registry;
}

std::vector<StateInfo> StatesOf(const OpInfo& op) {
  std::vector<StateInfo> states = op.states;
  states.insert(states.end(), op.scalars.begin(), op.scalars.end());
  return states;
}

TEST(OptimizerRules, AreTheOperatorsOfTheirName) {
  for (const FieldDescriptor* rule : Rules()) {
    const OpInfo* op = Operators().Find(rule->name());
    ASSERT_NE(op, nullptr) << rule->name();
    EXPECT_TRUE(op->is_optimizer) << rule->name();
    for (const StateInfo& state : StatesOf(*op)) {
      if (*state.start == '\0') continue;
      EXPECT_NE(rule->message_type()->FindFieldByName(state.start), nullptr)
          << rule->name() << ": " << state.in << " starts from " << state.start;
    }
  }
}

TEST(OptimizerRules, HaveOneRateAndNoSettingThatIsReadAndIgnored) {
  for (const FieldDescriptor* rule : Rules()) {
    const OpInfo& op = *Operators().Find(rule->name());
    int rates = 0;
    for (const FieldDescriptor* field : Settings(*rule)) {
      const std::string where = rule->name() + "." + field->name();
      const FieldTraits traits = TraitsOf(*field);
      rates += traits.is_rate() ? 1 : 0;
      const std::string attribute = traits.has_attribute()  ? traits.attribute()
                                    : traits.has_zero_for() ? traits.zero_for()
                                                            : field->name();
      const std::vector<StateInfo> states = StatesOf(op);
      const bool starts = std::any_of(states.begin(), states.end(),
                                      [&](const StateInfo& state) { return state.start == field->name(); });
      EXPECT_TRUE(traits.is_rate() || starts || op.FindAttr(attribute) != nullptr)
          << where << " reaches neither an attribute of the operator nor a state";
      EXPECT_EQ(field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT,
                traits.has_above() || traits.has_at_least() || traits.has_at_most())
          << where << ": numbers have a range";
    }
    EXPECT_EQ(rates, 1) << rule->name();
  }
}

TEST(OptimizerRules, TakeTheirOwnDefaults) {
  for (const FieldDescriptor* rule : Rules()) {
    OptimizerDesc optimizer;
    Message* settings = optimizer.GetReflection()->MutableMessage(&optimizer, rule);
    for (const FieldDescriptor* field : Settings(*rule)) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_FLOAT) continue;
      settings->GetReflection()->SetFloat(settings, field, field->default_value_float());
    }
    EXPECT_THAT(FindOutOfRange(optimizer), IsEmpty()) << rule->name();
    EXPECT_GT(BaseRateOf(optimizer), 0) << rule->name();
  }
}

TEST(OptimizerRules, EveryNumberOutOfRangeIsFound) {
  OptimizerDesc optimizer;
  optimizer.mutable_ftrl()->set_alpha(0);
  optimizer.mutable_ftrl()->set_l1(-1);
  optimizer.mutable_ftrl()->set_lr_power(0.5F);
  optimizer.mutable_schedule()->set_warmup_steps(-3);
  optimizer.mutable_schedule()->mutable_piecewise()->add_rates(0);
  optimizer.mutable_schedule()->mutable_piecewise()->add_rates(-0.5F);
  optimizer.mutable_clip()->set_norm(std::numeric_limits<float>::infinity());
  std::vector<std::string> found;
  for (const OutOfRange& wrong : FindOutOfRange(optimizer)) {
    found.push_back(wrong.path + " | " + wrong.Where() + " " + wrong.what);
  }
  EXPECT_THAT(found,
              testing::ElementsAre(
                  "ftrl.alpha | ftrl: alpha must be above 0, not 0", "ftrl.l1 | ftrl: l1 must not be negative, not -1",
                  "ftrl.lr_power | ftrl: lr_power must not be above 0, not 0.5",
                  "schedule.warmup_steps | schedule: warmup_steps must be at least 0, not -3",
                  "schedule.piecewise.rates[1] | schedule: piecewise: rates must not be negative, not -0.5",
                  "clip.norm | clip: norm must be above 0, not inf"));
}

}  // namespace
}  // namespace millrace
