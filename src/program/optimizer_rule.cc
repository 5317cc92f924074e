#include "program/optimizer_rule.h"

#include "model.pb.h"
#include "program/field_traits.h"

namespace millrace {

using google::protobuf::FieldDescriptor;

const FieldDescriptor* RuleOf(const OptimizerDesc& optimizer) {
  return OptimizerDesc::descriptor()->FindFieldByNumber(optimizer.rule_case());
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
  return rule->name() +
         " moves every row at each step, which a table that grows cannot do; give the table a rule of its own, or a "
         "vocabulary";
}

}  // namespace millrace
