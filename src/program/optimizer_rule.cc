#include "program/optimizer_rule.h"

#include <vector>

#include "model.pb.h"
#include "program/field_traits.h"

namespace millrace {

using google::protobuf::FieldDescriptor;

namespace {

/// "sgd, adagrad, adam or ftrl": the rules that move no row without a gradient.
std::string RulesOfGrowingTables() {
  std::vector<std::string> rules;
  const google::protobuf::OneofDescriptor& all = *OptimizerDesc::descriptor()->FindOneofByName("rule");
  for (int i = 0; i < all.field_count(); ++i) {
    if (!TraitsOf(*all.field(i)).moves_every_row()) rules.push_back(all.field(i)->name());
  }
  std::string names;
  for (size_t i = 0; i < rules.size(); ++i) names += (i == 0 ? "" : i + 1 < rules.size() ? ", " : " or ") + rules[i];
  return names;
}

}  // namespace

const FieldDescriptor* RuleOf(const OptimizerDesc& optimizer) {
  return OptimizerDesc::descriptor()->FindFieldByNumber(optimizer.rule_case());
}

std::string UpdateTypeOf(const OptimizerDesc& optimizer) {
  if (optimizer.has_custom()) return optimizer.custom().class_name();
  const FieldDescriptor* rule = RuleOf(optimizer);
  return rule == nullptr ? "" : rule->name();
}

const google::protobuf::Message& SettingsOf(const OptimizerDesc& optimizer) {
  return optimizer.GetReflection()->GetMessage(optimizer, RuleOf(optimizer));
}

float BaseRateOf(const OptimizerDesc& optimizer) {
  const FieldDescriptor* rule = RuleOf(optimizer);
  for (int i = 0; rule != nullptr && i < rule->message_type()->field_count(); ++i) {
    const FieldDescriptor& field = *rule->message_type()->field(i);
    if (!TraitsOf(field).is_rate()) continue;
    const google::protobuf::Message& settings = SettingsOf(optimizer);
    return settings.GetReflection()->GetFloat(settings, &field);
  }
  return 0;
}

std::string WhyNotForGrowingTable(const OptimizerDesc& optimizer) {
  const FieldDescriptor* rule = RuleOf(optimizer);
  if (rule == nullptr || !TraitsOf(*rule).moves_every_row()) return "";
  const std::string advice = "; give the table " + RulesOfGrowingTables() + ", or a vocabulary";
  if (optimizer.has_custom()) {
    return "custom updates parameters that are held whole, and a table that grows is not" + advice;
  }
  return rule->name() + " moves every row at each step, which a table that grows cannot do" + advice;
}

}  // namespace millrace
