#include <algorithm>

#include "core/edit_distance.h"
#include "model/lowering.h"

namespace millrace {
namespace {

std::string DidYouMeanArg(const std::string& name, const std::vector<ArgInfo>& args) {
  std::vector<std::string_view> names;
  for (const ArgInfo& arg : args) names.push_back(arg.name);
  return DidYouMean(name, names);
}

bool HasArg(const std::string& name, const std::vector<ArgInfo>& args) {
  return std::any_of(args.begin(), args.end(), [&](const ArgInfo& arg) { return arg.name == name; });
}

/// What the message's value becomes as the registered type; nothing when it does not fit.
std::optional<AttrValue> Convert(const OpDescAttr& attr, const AttrValue& wanted) {
  if (std::holds_alternative<std::vector<int64_t>>(wanted) && attr.value_case() == OpDescAttr::VALUE_NOT_SET) {
    return std::vector<int64_t>(attr.ints().begin(), attr.ints().end());
  }
  if (std::holds_alternative<std::vector<float>>(wanted) && attr.value_case() == OpDescAttr::VALUE_NOT_SET) {
    return std::vector<float>(attr.floats().begin(), attr.floats().end());
  }
  const bool is_list = attr.ints_size() + attr.floats_size() > 0;
  if (is_list) return std::nullopt;
  if (std::holds_alternative<float>(wanted) && attr.has_f()) return attr.f();
  if (std::holds_alternative<float>(wanted) && attr.has_i()) return static_cast<float>(attr.i());
  if (std::holds_alternative<int64_t>(wanted) && attr.has_i()) return static_cast<int64_t>(attr.i());
  if (std::holds_alternative<bool>(wanted) && attr.has_b()) return attr.b();
  if (std::holds_alternative<std::string>(wanted) && attr.has_s()) return attr.s();
  return std::nullopt;
}

std::string_view FieldOf(const AttrValue& value) {
  constexpr std::string_view kFields[] = {"i", "f", "b", "s", "ints", "floats", "strings"};
  return kFields[value.index()];
}

/// A layer, a dense slot, or (for operators on ids and tables) a sparse slot or a table.
std::optional<std::string> OpInput(Lowering& lowering, const std::string& where, const std::string& at,
                                   const std::string& name) {
  if (const TableDesc* table = FindTable(lowering.model(), name); table != nullptr) {
    lowering.Read(at, name);
    if (lowering.IsBroken(name)) return std::nullopt;
    lowering.AddTable(*table);
    return name;
  }
  const SlotSpec* const slot = lowering.FindSlot(name);
  if (slot == nullptr || !slot->is_used) return lowering.Input(where, at, name);
  // An operator may compute the loss: what it does with a label is not known.
  const auto& losses = lowering.model().loss();
  const auto reads = [&name](const LossDesc& loss) { return loss.label() == name; };
  if (std::none_of(losses.begin(), losses.end(), reads)) lowering.Read(at, name);
  if (lowering.Slot(where, at, name) == nullptr) return std::nullopt;
  return name;
}

bool BindInputs(Lowering& lowering, const std::string& where, const OpLayer& layer, const OpInfo& info, OpDesc& op) {
  bool complete = true;
  for (int i = 0; i < layer.inputs_size(); ++i) {
    const OpLayer::Argument& argument = layer.inputs(i);
    const std::string at = "inputs[" + std::to_string(i) + "]";
    if (!HasArg(argument.name(), info.inputs)) {
      lowering.Problem(where, at + ": operator \"" + info.type + "\" has no input \"" + argument.name() + "\"" +
                                  DidYouMeanArg(argument.name(), info.inputs));
      complete = false;
      continue;
    }
    std::vector<std::string> vars;
    for (int k = 0; k < argument.vars_size(); ++k) {
      const std::optional<std::string> var =
          OpInput(lowering, where, at + ".vars[" + std::to_string(k) + "]", argument.vars(k));
      complete = complete && var.has_value();
      if (var) vars.push_back(*var);
    }
    SetInput(op, argument.name(), vars);
  }
  for (const ArgInfo& input : info.inputs) {
    if (input.optional || !InputArguments(op, input.name).empty() || !complete) continue;
    lowering.Problem(where, "inputs: input " + input.name + " of operator \"" + info.type + "\" is missing");
    complete = false;
  }
  return complete;
}

}  // namespace

std::optional<std::vector<std::pair<std::string, AttrValue>>> ReadAttrs(
    Lowering& lowering, std::string_view where, const google::protobuf::RepeatedPtrField<OpDescAttr>& given,
    const std::vector<AttrInfo>& known, const std::string& owner, const std::string& path) {
  std::vector<std::pair<std::string, AttrValue>> values;
  for (int i = 0; i < given.size(); ++i) {
    const OpDescAttr& attr = given[i];
    const std::string at = path + "[" + std::to_string(i) + "]: ";
    const auto info =
        std::find_if(known.begin(), known.end(), [&](const AttrInfo& k) { return k.name == attr.name(); });
    if (info == known.end()) {
      std::vector<std::string_view> names;
      for (const AttrInfo& candidate : known) names.push_back(candidate.name);
      lowering.Problem(where,
                       at + owner + " has no attribute \"" + attr.name() + "\"" + DidYouMean(attr.name(), names));
      continue;
    }
    std::optional<AttrValue> value = Convert(attr, info->default_value);
    if (!value) {
      const std::string of = owner.substr(owner.find('"'));
      lowering.Problem(where, at + "attribute \"" + attr.name() + "\" of " + of + " is written in the field " +
                                  std::string(FieldOf(info->default_value)));
      continue;
    }
    values.emplace_back(attr.name(), *std::move(value));
  }
  if (static_cast<int>(values.size()) < given.size()) return std::nullopt;
  return values;
}

std::optional<PartAttrs> ReadPartAttrs(Lowering& lowering, std::string_view where,
                                       const google::protobuf::RepeatedPtrField<OpDescAttr>& given,
                                       const std::vector<AttrInfo>& known, const std::string& name,
                                       const std::string& path) {
  auto values = ReadAttrs(lowering, where, given, known, "class \"" + name + "\"", path);
  if (!values) return std::nullopt;
  PartAttrs::Values all;
  for (auto& [attr, value] : *values) all.insert_or_assign(attr, std::move(value));
  for (const AttrInfo& attr : known) {
    if (attr.required && !all.contains(attr.name)) {
      lowering.Missing(where, path + ": class \"" + name + "\" needs the attribute \"" + attr.name + "\": " + attr.doc);
      return std::nullopt;
    }
    all.emplace(attr.name, attr.default_value);
  }
  return PartAttrs(std::move(all));
}

bool LowerOpLayer(Lowering& lowering, const LayerPart& part) {
  const std::string& where = part.where;
  const LayerDesc& layer = part.desc;
  const OpLayer& op_layer = layer.op();
  const OpRegistry& registry = lowering.main().registry();
  if (op_layer.type().empty()) {
    lowering.Missing(where, "type: an op layer needs a type, the name of an operator");
    return false;
  }
  const OpInfo* info = registry.Find(op_layer.type());
  if (info == nullptr) {
    lowering.Problem(where, "type: no operator \"" + op_layer.type() + "\"" + registry.Hint(op_layer.type()));
    return false;
  }
  if (info->is_optimizer || info->is_gradient || info->outputs.empty()) {
    lowering.Problem(where, "type: operator \"" + info->type + "\" cannot be a layer");
    return false;
  }
  OpDesc op;
  op.set_type(info->type);
  const bool inputs_fit = BindInputs(lowering, where, op_layer, *info, op);
  const auto attrs = ReadAttrs(lowering, where, op_layer.attrs(), info->attrs, "operator \"" + info->type + "\"");
  const std::string value = op_layer.has_output() ? op_layer.output() : info->outputs[0].name;
  if (!HasArg(value, info->outputs)) {
    lowering.Problem(where, "output: operator \"" + info->type + "\" has no output \"" + value + "\"" +
                                DidYouMeanArg(value, info->outputs));
    return false;
  }
  if (!inputs_fit || !attrs) return false;
  for (const auto& [name, attr] : *attrs) SetAttr(op, name, attr);
  for (const ArgInfo& output : info->outputs) {
    SetOutput(op, output.name, {output.name == value ? layer.name() : layer.name() + "." + output.name});
  }
  if (!lowering.Append(where, std::move(op))) return false;
  if (lowering.main().vars().find(layer.name())->second.kind == VarType::LOD_TENSOR) return true;
  lowering.Problem(where, "type: operator \"" + info->type + "\" cannot be a layer: it gives no tensor");
  return false;
}

}  // namespace millrace
