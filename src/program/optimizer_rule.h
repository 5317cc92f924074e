#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

namespace millrace {

class OptimizerDesc;

// The schema of OptimizerDesc is the list of optimizers: a rule is a field of it, with the name of the operator that
// updates by it, and its settings are the fields of the rule's message; `custom` is any other operator.
// docs/adding_an_optimizer.md adds one.

/// The rule that an optimizer names; null when it names none.
const google::protobuf::FieldDescriptor* RuleOf(const OptimizerDesc& optimizer);
/// The operator that updates by the rule: of the rule's name, or the plugin's that it gives. Empty when it names none.
std::string UpdateTypeOf(const OptimizerDesc& optimizer);
/// The settings of the rule, which it must name.
const google::protobuf::Message& SettingsOf(const OptimizerDesc& optimizer);
/// The rule's learning rate, before any schedule; 0 when it names none.
float BaseRateOf(const OptimizerDesc& optimizer);
/// Why a table that grows cannot learn by the rule; empty: it can.
std::string WhyNotForGrowingTable(const OptimizerDesc& optimizer);

}  // namespace millrace
