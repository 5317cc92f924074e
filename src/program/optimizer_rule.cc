#include "program/optimizer_rule.h"

#include "model.pb.h"
#include "program/field_traits.h"

namespace millrace {

using google::protobuf::FieldDescriptor;

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
  if (optimizer.has_custom()) {
    return "custom updates parameters that are held whole, and a table that grows is not; give the table a rule of its "
           "own, or a vocabulary";
  }
  return rule->name() +
         " moves every row at each step, which a table that grows cannot do; give the table a rule of its own, or a "
         "vocabulary";
}

}  // namespace millrace
