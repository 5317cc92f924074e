#include <glog/logging.h>
#include <google/protobuf/reflection.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "core/edit_distance.h"
#include "model/lowering.h"
#include "program/field_traits.h"
#include "program/learning_rate.h"
#include "program/oneof_names.h"
#include "program/optimizer_rule.h"

namespace millrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool HasArg(const std::vector<ArgInfo>& args, std::string_view name) {
  return std::any_of(args.begin(), args.end(), [name](const ArgInfo& arg) { return arg.name == name; });
}

/// Notes what is wrong with the operator that a plugin is to bring, or with its attributes. `path`: of the settings.
void CheckCustomOptimizer(Lowering& lowering, const std::string& where, const std::string& path,
                          const CustomOptimizer& custom) {
  const std::string& type = custom.class_name();
  const OpRegistry& registry = lowering.main().registry();
  const std::string at = path + ".class_name: ";
  const auto refuse = [&](const std::string& what) { lowering.Problem(where, at + what); };
  if (type.empty()) {
    return lowering.Missing(where, at + "class_name must be the name under which a plugin registers the optimizer");
  }
  if (OptimizerDesc::descriptor()->FindFieldByName(type) != nullptr) {
    return refuse("\"" + type + "\" is no class of a plugin: write " + type + " in place of custom");
  }
  const OpInfo* info = registry.Find(type);
  if (info == nullptr) {
    std::vector<std::string> names;
    for (const OpInfo* op : registry.all()) {
      if (op->is_optimizer && !op->is_fused) names.push_back(op->type);
    }
    return refuse(NoSuchName("optimizer", type, names, registry.plugin_advice()));
  }
  if (!info->is_optimizer || info->is_fused || !HasArg(info->inputs, "Param") || !HasArg(info->inputs, "Grad") ||
      !HasArg(info->inputs, "LearningRate") || !HasArg(info->outputs, "ParamOut")) {
    return refuse("operator \"" + type +
                  "\" does not update a parameter: it takes no Param, Grad and LearningRate, gives no ParamOut, or is "
                  "not registered by Optimizer()");
  }
  const auto starts_well = [info](const StateInfo& state) {
    const AttrInfo* attr = *state.start == '\0' ? nullptr : info->FindAttr(state.start);
    return *state.start == '\0' || (attr != nullptr && std::holds_alternative<float>(attr->default_value));
  };
  if (!std::all_of(info->states.begin(), info->states.end(), starts_well) ||
      !std::all_of(info->scalars.begin(), info->scalars.end(), starts_well)) {
    refuse("operator \"" + type + "\" has a state that starts from no attribute of floats");
  }
  (void)ReadAttrs(lowering, where, custom.attrs(), info->attrs, "operator \"" + type + "\"", path + ".attrs");
}

/// Notes what is wrong with an optimizer that is there. `prefix`: of its fields.
void CheckOptimizer(Lowering& lowering, const std::string& where, const std::string& prefix,
                    const OptimizerDesc& optimizer) {
  (void)lowering.CheckRanges(where, prefix, optimizer);
  if (RuleOf(optimizer) == nullptr) {
    const std::string what = "an optimizer needs a rule: " + OneofNames<OptimizerDesc>("rule") +
                             ", as in optimizer { adagrad { lr: 0.01 } }";
    lowering.Missing(where, prefix + "rule: " + what);
  }
  if (optimizer.has_custom()) CheckCustomOptimizer(lowering, where, prefix + "custom", optimizer.custom());
  CheckClip(lowering, where, prefix + "clip", optimizer.has_clip() ? &optimizer.clip() : nullptr);
  for (const ScheduleProblem& problem : FindScheduleProblems(optimizer.schedule())) {
    lowering.Problem(where, prefix + "schedule." + problem.path + ": " + problem.what);
  }
}

/// Declares the variable that holds a rate: a constant that the startup program makes, or one that main computes.
void AddRate(Lowering& lowering, const std::string& where, const std::string& name, const OptimizerDesc& optimizer) {
  if (lowering.main().Has(name)) return;
  if (!optimizer.has_schedule()) {
    lowering.AddState(where, name, {1}, BaseRateOf(optimizer));
    return;
  }
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(optimizer.schedule(), &text);
  while (text.ends_with(' ')) text.pop_back();
  lowering.Append(
      where,
      MakeOp("learning_rate_schedule", {}, {{"Out", {name}}}, {{"base", BaseRateOf(optimizer)}, {"schedule", text}}),
      OpRole::kOptimize);
}

/// What a state of an update starts from.
float StartOf(const StateInfo& state, const OpView& op, const OptimizerDesc& optimizer) {
  if (*state.start == '\0') return 0;
  if (optimizer.has_custom()) return op.Float(state.start);
  const Message& settings = SettingsOf(optimizer);
  const FieldDescriptor* field = settings.GetDescriptor()->FindFieldByName(state.start);
  CHECK(field != nullptr) << op.type() << " has no " << state.start << " that " << state.name << " starts from";
  return settings.GetReflection()->GetFloat(settings, field);
}

/// Binds a state of an update to a new variable of the parameter.
void AddState(Lowering& lowering, OpDesc& op, const std::string& param, const StateInfo& state, const Dims& dims,
              float start) {
  const std::string stem = param + "_" + state.name;
  const std::string name = lowering.StateName(stem, stem + "_0");
  lowering.AddState("optimizer", name, dims, start);
  SetInput(op, state.in, {name});
  SetOutput(op, state.out, {name});
}

bool Names(const Message& settings, const FieldDescriptor& field, const std::string& param) {
  const auto names = settings.GetReflection()->GetRepeatedFieldRef<std::string>(settings, &field);
  return std::find(names.begin(), names.end(), param) != names.end();
}

/// The settings of a rule as attributes of its operator.
void SetAttrs(OpDesc& op, const OpInfo& info, const Message& settings, const std::string& param) {
  const auto& reflection = *settings.GetReflection();
  for (int i = 0; i < settings.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *settings.GetDescriptor()->field(i);
    const FieldTraits traits = TraitsOf(field);
    const std::string& name = traits.has_attribute() ? traits.attribute() : field.name();
    const AttrInfo* attr = info.FindAttr(name);
    if (traits.has_zero_for()) {
      if (Names(settings, field, param)) SetAttr(op, traits.zero_for(), 0.0F);
    } else if (attr == nullptr) {
      continue;  // the rate, or what a state starts from
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      SetAttr(op, name, reflection.GetBool(settings, &field));
    } else if (std::holds_alternative<std::vector<float>>(attr->default_value)) {
      SetAttr(op, name, std::vector<float>{reflection.GetFloat(settings, &field)});
    } else {
      SetAttr(op, name, reflection.GetFloat(settings, &field));
    }
  }
  // Paddle's programs correct sparse gradients by the powers of the next step.
  if (info.FindAttr("exact_sparse_powers") != nullptr) SetAttr(op, "exact_sparse_powers", true);
}

OpDesc UpdateOp(Lowering& lowering, const ParamGrad& target, const OptimizerDesc& optimizer, const std::string& rate) {
  OpDesc op =
      MakeOp(UpdateTypeOf(optimizer), {{"Param", {target.param}}, {"Grad", {target.grad}}, {"LearningRate", {rate}}},
             {{"ParamOut", {target.param}}});
  const OpInfo* info = lowering.main().registry().Find(op.type());
  if (info == nullptr) return op;
  if (optimizer.has_custom()) {
    const auto attrs = ReadAttrs(lowering, "optimizer", optimizer.custom().attrs(), info->attrs, "");
    for (const auto& [name, value] : *attrs) SetAttr(op, name, value);
  } else {
    SetAttrs(op, *info, SettingsOf(optimizer), target.param);
  }
  const Dims dims = lowering.main().vars().find(target.param)->second.dims;
  const auto add = [&](const StateInfo& state, const Dims& of) {
    AddState(lowering, op, target.param, state, of, StartOf(state, OpView(op, *info), optimizer));
  };
  for (const StateInfo& state : info->states) add(state, dims);
  for (const StateInfo& scalar : info->scalars) add(scalar, {1});
  return op;
}

/// Of a table with an accessor without a rate: its rules have their own.
OpDesc TablePush(const ParamGrad& target, const std::string& rate) {
  if (rate.empty()) {
    return MakeOp("sparse_table_push", {{"Table", {target.param}}, {"Grad", {target.grad}}},
                  {{"TableOut", {target.param}}});
  }
  return MakeOp("sparse_table_push", {{"Table", {target.param}}, {"Grad", {target.grad}}, {"LearningRate", {rate}}},
                {{"TableOut", {target.param}}});
}

/// The variable with the rate of a parameter: `shared`, that of the model's optimizer, its table's own, or a part of
/// one.
std::string RateOf(Lowering& lowering, const std::string& param, const OptimizerDesc& optimizer,
                   const std::string& shared) {
  const bool own = &optimizer != &lowering.model().optimizer();
  const std::string usual = "learning_rate_" + param;
  std::string rate = own ? lowering.StateName(usual, usual) : shared;
  AddRate(lowering, "optimizer", rate, optimizer);
  const ParameterRule* rule = lowering.RuleOf(param);
  if (rule == nullptr || rule->rate() == 1) return rate;
  std::string scaled = rate + "_of_" + param;
  lowering.Append("parameter \"" + param + "\"",
                  MakeOp("scale", {{"X", {rate}}}, {{"Out", {scaled}}},
                         {{"scale", rule->rate()}, {"bias", 0.0f}, {"bias_after_scale", true}}),
                  OpRole::kOptimize);
  return scaled;
}

}  // namespace

const TableDesc* FindTable(const ModelDesc& model, const std::string& name) {
  for (const TableDesc& table : model.table()) {
    if (table.name() == name) return &table;
  }
  return nullptr;
}

const OptimizerDesc& OptimizerOf(const ModelDesc& model, const TableDesc* table) {
  if (table != nullptr && table->has_accessor()) return OptimizerDesc::default_instance();
  return table != nullptr && table->has_optimizer() ? table->optimizer() : model.optimizer();
}

void CheckOptimizers(Lowering& lowering, bool is_needed) {
  const ModelDesc& model = lowering.model();
  if (model.has_optimizer()) {
    lowering.Enter("model.optimizer");
    CheckOptimizer(lowering, "optimizer", "", model.optimizer());
  } else if (is_needed) {
    lowering.Enter("model");
    lowering.Missing("model",
                     "optimizer: the model has no optimizer; add, for example, optimizer { adagrad { lr: 0.01 } }");
  }
  for (int i = 0; i < model.table_size(); ++i) {
    const TableDesc& table = model.table(i);
    const std::string where = "table \"" + table.name() + "\"";
    lowering.Enter("model.table[" + std::to_string(i) + "]");
    if (table.has_optimizer()) CheckOptimizer(lowering, where, "optimizer.", table.optimizer());
    if (table.has_accessor()) {
      if (lowering.RuleOf(table.name()) != nullptr) {
        lowering.Problem(where,
                         "its rows learn by the rules of its accessor: a rate, a penalty or a clip of the parameter's "
                         "own is not of them");
      }
      continue;
    }
    const std::string refusal = table.has_vocabulary() ? "" : WhyNotForGrowingTable(OptimizerOf(model, &table));
    if (!refusal.empty()) lowering.Problem(where, "optimizer: " + refusal);
    CheckTableGradients(lowering, table);
  }
  lowering.Enter("model");
}

namespace {

/// A rule treats parameters otherwise that it moves, or that nothing moves; any other name is a mistake.
void CheckNamedParameters(Lowering& lowering, const std::vector<ParamGrad>& gradients, const OptimizerDesc& optimizer,
                          const std::string& where, const std::string& prefix) {
  const FieldDescriptor* rule = RuleOf(optimizer);
  if (rule == nullptr) return;
  std::vector<std::string_view> moved;
  for (const ParamGrad& target : gradients) {
    if (&OptimizerOf(lowering.model(), FindTable(lowering.model(), target.param)) == &optimizer) {
      moved.push_back(target.param);
    }
  }
  const Message& settings = SettingsOf(optimizer);
  for (int i = 0; i < rule->message_type()->field_count(); ++i) {
    const FieldDescriptor& field = *rule->message_type()->field(i);
    if (!TraitsOf(field).has_zero_for()) continue;
    for (const std::string& name : settings.GetReflection()->GetRepeatedFieldRef<std::string>(settings, &field)) {
      const auto var = lowering.main().vars().find(name);
      const bool is_moved =
          std::any_of(gradients.begin(), gradients.end(), [&name](const ParamGrad& g) { return g.param == name; });
      const bool is_idle = var != lowering.main().vars().end() && var->second.persistable && !is_moved;
      if (is_idle || std::find(moved.begin(), moved.end(), name) != moved.end()) continue;
      lowering.Problem(where, prefix + rule->name() + ": " + field.name() + ": moves no parameter \"" + name + "\"" +
                                  DidYouMean(name, moved));
    }
  }
}

}  // namespace

void AppendUpdates(Lowering& lowering, std::vector<ParamGrad> gradients) {
  const ModelDesc& model = lowering.model();
  lowering.Enter("model.optimizer");
  // Paddle updates in the order of the parameters' names.
  std::sort(gradients.begin(), gradients.end(),
            [](const ParamGrad& a, const ParamGrad& b) { return a.param < b.param; });
  CheckNamedParameters(lowering, gradients, model.optimizer(), "optimizer", "");
  for (int i = 0; i < model.table_size(); ++i) {
    const TableDesc& table = model.table(i);
    lowering.Enter("model.table[" + std::to_string(i) + "]");
    CheckNamedParameters(lowering, gradients, table.optimizer(), "table \"" + table.name() + "\"", "optimizer: ");
  }
  lowering.Enter("model.optimizer");
  ClipAndPenalize(lowering, &gradients);
  const std::string shared_rate = lowering.StateName("learning_rate", "learning_rate_0");
  for (const ParamGrad& target : gradients) {
    const TableDesc* table = FindTable(model, target.param);
    const OptimizerDesc& optimizer = OptimizerOf(model, table);
    const bool counts = table != nullptr && table->has_accessor();
    const std::string rate = counts ? "" : RateOf(lowering, target.param, optimizer, shared_rate);
    const bool is_hash = table != nullptr && !table->has_vocabulary();
    const std::string where = "parameter \"" + target.param + "\"";
    lowering.Append(where, is_hash ? TablePush(target, rate) : UpdateOp(lowering, target, optimizer, rate),
                    OpRole::kOptimize);
  }
}

}  // namespace millrace
