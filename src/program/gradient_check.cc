#include "program/gradient_check.h"

#include <algorithm>

namespace millrace {
namespace {

/// True when a gradient of this kind reads that input of the forward operator wherever it is bound.
bool Reads(const OpInfo& gradient, const ArgInfo& input) {
  return std::any_of(gradient.inputs.begin(), gradient.inputs.end(),
                     [&](const ArgInfo& read) { return read.name == input.name; });
}

/// The forward operator as far as its gradient shows it; outputs that the gradient does not read are bound to the name
/// of the parameter. False when the gradient does not show it whole: it never reads an input, which may decide on the
/// shape even where it is optional, or nothing of a list that the forward operator writes.
bool RebuildForward(const OpView& view, const OpInfo& info, OpDesc* forward) {
  const OpDesc& gradient = view.desc();
  forward->set_type(info.type);
  for (const ArgInfo& input : info.inputs) {
    const std::vector<std::string> names = InputArguments(gradient, input.name);
    if (names.empty() && !(input.optional && Reads(view.info(), input))) return false;
    if (!names.empty()) SetInput(*forward, input.name, names);
  }
  for (const ArgInfo& output : info.outputs) {
    if (output.duplicable) {
      const size_t count = std::max(InputArguments(gradient, output.name).size(),
                                    InputArguments(gradient, GradName(output.name)).size());
      if (count == 0) return false;
      std::vector<std::string> names;
      for (size_t i = 0; i < count; ++i) names.push_back(output.name + "[" + std::to_string(i) + "]");
      SetOutput(*forward, output.name, names);
    } else {
      SetOutput(*forward, output.name, {output.name});
    }
  }
  for (const OpDesc::Attr& attr : gradient.attrs()) {
    if (info.FindAttr(attr.name()) != nullptr) *forward->add_attrs() = attr;
  }
  return true;
}

bool MayHold(const Dims& wanted, const Dims& given) {
  const auto wanted_sizes = wanted.sizes();
  const auto given_sizes = given.sizes();
  const auto known = [](int64_t size) { return size >= 0; };
  if (std::all_of(wanted_sizes.begin(), wanted_sizes.end(), known) &&
      std::all_of(given_sizes.begin(), given_sizes.end(), known)) {
    return wanted.numel() == given.numel();
  }
  if (wanted.rank() != given.rank()) return true;
  for (int axis = 0; axis < wanted.rank(); ++axis) {
    if (wanted[axis] >= 0 && given[axis] >= 0 && wanted[axis] != given[axis]) return false;
  }
  return true;
}

}  // namespace

Status CheckGradient(const OpView& view, const OpRegistry& registry, const VarMetas& vars) {
  const OpDesc& gradient = view.desc();
  const OpInfo* info = registry.ForwardOf(view.info());
  OpDesc forward;
  if (info == nullptr || !RebuildForward(view, *info, &forward)) return Status::Ok();
  VarMetas scratch;
  for (const OpDesc::Var& input : forward.inputs()) {
    for (const std::string& name : input.arguments()) {
      if (const auto it = vars.find(name); it != vars.end()) scratch.insert(*it);
    }
  }
  if (Status s = InferShapes(OpView(forward, *info), scratch, registry); !s.ok()) {
    return std::move(s).Context(gradient.type());
  }
  for (const ArgInfo& output : info->outputs) {
    const std::vector<std::string> names = InputArguments(gradient, GradName(output.name));
    if (names.empty() || names[0] == kEmptyVar) continue;
    const auto made = scratch.find(output.name);
    const auto given = vars.find(names[0]);
    if (made == scratch.end() || given == vars.end() || MayHold(made->second.dims, given->second.dims)) continue;
    return InvalidConfig(gradient.type() + ": input " + GradName(output.name) + " (\"" + names[0] + "\") is " +
                         given->second.dims.ToString() + ", but " + output.name + " of " + info->type + " is " +
                         made->second.dims.ToString());
  }
  return Status::Ok();
}

}  // namespace millrace
