// Updates by one rule, with one learning rate and equal attributes, become one operator over lists of parameters.
#include <algorithm>
#include <map>

#include "program/passes/op_graph.h"

namespace millrace {
namespace {

/// Equal for updates that can be one operator.
std::string Signature(const OpDesc& op) {
  std::string signature = op.type() + "|" + OnlyInput(op, "LearningRate");
  std::map<std::string, std::string> attrs;
  for (const OpDesc::Attr& attr : op.attrs()) {
    if (attr.name().starts_with("op_")) continue;  // op_role, op_role_var: whose parameter it is
    attrs[attr.name()] = attr.SerializeAsString();
  }
  for (const auto& [name, value] : attrs) signature += "|" + value;
  for (const OpDesc::Var& input : op.inputs()) {
    if (input.arguments_size() > 0) signature += "|" + input.parameter();
  }
  return signature;
}

OpDesc JoinUpdates(const OpGraph& graph, const std::vector<int>& members) {
  OpDesc fused = graph.op(members[0]);
  fused.set_type("fused_" + fused.type());
  const auto join = [&](auto& bindings, const auto& arguments) {
    for (OpDesc::Var& binding : bindings) {
      if (binding.parameter() == "LearningRate") continue;
      std::vector<std::string> all;
      for (const int i : members) {
        for (std::string& name : arguments(graph.op(i), binding.parameter())) all.push_back(std::move(name));
      }
      binding.clear_arguments();
      for (const std::string& name : all) binding.add_arguments(name);
    }
  };
  join(*fused.mutable_inputs(), InputArguments);
  join(*fused.mutable_outputs(), OutputArguments);
  for (int i = fused.attrs_size() - 1; i >= 0; --i) {
    if (fused.attrs(i).name() == "op_role_var") fused.mutable_attrs()->DeleteSubrange(i, 1);
  }
  return fused;
}

/// True when the operator over many takes all that this one is given: not numbers that come as tensors.
bool TakesAll(const OpInfo& fused, const OpDesc& op) {
  return std::all_of(op.inputs().begin(), op.inputs().end(), [&fused](const OpDesc::Var& input) {
    return input.arguments_size() == 0 ||
           std::any_of(fused.inputs.begin(), fused.inputs.end(),
                       [&](const ArgInfo& arg) { return arg.name == input.parameter(); });
  });
}

/// True when nobody but the updates themselves uses the parameters between the first and the last of them.
bool CanMove(const OpGraph& graph, const std::vector<int>& members) {
  for (const int member : members) {
    const std::string param = OnlyInput(graph.op(member), "Param");
    for (const int user : graph.Readers(param)) {
      if (user != member && user > members.front()) return false;
    }
    for (const int writer : graph.Writers(OnlyInput(graph.op(member), "Grad"))) {
      if (writer > members.back()) return false;
    }
  }
  return true;
}

}  // namespace

void FuseOptimizers(OpGraph& graph, const OpRegistry& registry) {
  std::map<std::string, std::vector<int>> groups;
  for (int i = 0; i < graph.size(); ++i) {
    const OpInfo* info = registry.Find(graph.type(i));
    if (info == nullptr || !info->is_optimizer || OnlyInput(graph.op(i), "Param").empty()) continue;
    const OpInfo* fused = registry.Find("fused_" + std::string(graph.type(i)));
    if (fused == nullptr || !TakesAll(*fused, graph.op(i))) continue;
    groups[Signature(graph.op(i))].push_back(i);
  }
  for (const auto& [signature, members] : groups) {
    if (members.size() < 2 || !CanMove(graph, members)) continue;
    OpDesc fused = JoinUpdates(graph, members);
    for (const int i : members) graph.Remove(i);
    graph.Replace(members.back(), std::move(fused));
  }
}

}  // namespace millrace
