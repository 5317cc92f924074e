#include "framework/op_check.h"

#include <algorithm>

#include "core/edit_distance.h"

namespace millrace {
namespace {

void CheckArguments(const std::string& where, const OpDesc& op, const OpInfo& info,
                    std::vector<std::string>* problems) {
  const auto check = [&](const auto& bindings, const std::vector<ArgInfo>& args, const char* kind) {
    for (const ArgInfo& arg : args) {
      const bool bound = std::any_of(bindings.begin(), bindings.end(), [&](const OpDesc::Var& binding) {
        return binding.parameter() == arg.name && binding.arguments_size() > 0;
      });
      if (!bound && !arg.optional) problems->push_back(where + ": " + kind + " " + arg.name + " is not bound");
    }
    for (const OpDesc::Var& binding : bindings) {
      const auto it =
          std::find_if(args.begin(), args.end(), [&](const ArgInfo& arg) { return arg.name == binding.parameter(); });
      if (it != args.end() || binding.arguments_size() == 0) continue;
      std::vector<std::string_view> names;
      for (const ArgInfo& arg : args) names.push_back(arg.name);
      problems->push_back(where + ": there is no " + kind + " \"" + binding.parameter() + "\"" +
                          DidYouMean(binding.parameter(), names));
    }
  };
  check(op.inputs(), info.inputs, "input");
  // Gradients of inputs that nobody wants stay unbound.
  if (!info.is_gradient) check(op.outputs(), info.outputs, "output");
}

void CheckVariables(const std::string& where, const OpDesc& op, const VarMetas& vars,
                    std::vector<std::string>* problems) {
  for (const OpDesc::Var& binding : op.inputs()) {
    for (const std::string& name : binding.arguments()) {
      if (name == kEmptyVar || vars.contains(name)) continue;
      std::vector<std::string_view> names;
      for (const auto& [known, meta] : vars) names.push_back(known);
      problems->push_back(where + ": input " + binding.parameter() + ": there is no variable \"" + name + "\"" +
                          DidYouMean(name, names));
    }
  }
}

/// True when an attribute as written can be read as the type it is registered with.
bool FitsAttr(AttrType written, const AttrValue& registered) {
  const auto is = [&registered]<class... T>() { return (std::holds_alternative<T>(registered) || ...); };
  switch (written) {
    case INT:
    case LONG:
    case BLOCK: return is.operator()<int64_t, float, bool>();
    case BOOLEAN: return is.operator()<int64_t, bool>();
    case FLOAT:
    case FLOAT64: return is.operator()<float, std::vector<float>>();
    case STRING:
    case VAR: return is.operator()<std::string>();
    case INTS:
    case LONGS:
    case BLOCKS:
    case BOOLEANS: return is.operator()<std::vector<int64_t>>();
    case FLOATS:
    case FLOAT64S: return is.operator()<std::vector<float>>();
    case STRINGS:
    case VARS: return is.operator()<std::vector<std::string>>();
    default: return false;
  }
}

void CheckAttributes(const std::string& where, const OpDesc& op, const OpInfo& info, const OpRegistry& registry,
                     std::vector<std::string>* problems) {
  // A gradient carries the attributes of its forward operator, which is checked itself.
  const OpInfo* forward = registry.ForwardOf(info);
  for (const OpDesc::Attr& attr : op.attrs()) {
    const AttrInfo* known = info.FindAttr(attr.name());
    if (known == nullptr) {
      if (IsHintAttr(attr.name()) || (forward != nullptr && forward->FindAttr(attr.name()) != nullptr)) continue;
      std::vector<std::string_view> names;
      for (const AttrInfo& other : info.attrs) names.push_back(other.name);
      problems->push_back(where + ": attribute \"" + attr.name() + "\" is not supported" +
                          DidYouMean(attr.name(), names));
    } else if (!FitsAttr(attr.type(), known->default_value)) {
      problems->push_back(where + ": attribute \"" + attr.name() + "\" must not be of type " +
                          AttrType_Name(attr.type()));
    } else if (const AttrValue value = OpView(op, info).Value(attr.name());
               known->fixed && value != known->default_value) {
      problems->push_back(where + ": attribute \"" + attr.name() + "\" is " + ShowAttr(value) + "; only " +
                          ShowAttr(known->default_value) + " is supported");
    }
  }
}

}  // namespace

void CheckOp(const std::string& where, const OpDesc& op, const VarMetas& vars, const OpRegistry& registry,
             std::vector<std::string>* problems) {
  const OpInfo* info = registry.Find(op.type());
  if (info == nullptr) {
    constexpr std::string_view kGrad = "_grad";
    const std::string forward = op.type().ends_with(kGrad) ? op.type().substr(0, op.type().size() - kGrad.size()) : "";
    if (!forward.empty() && registry.Find(forward) != nullptr) {
      problems->push_back(
          where + ": no such operator, as \"" + forward +
          "\" has no gradient here; write what is learned without it, or mark its outputs stop_gradient");
      return;
    }
    const std::string nearest = registry.Nearest(op.type());
    problems->push_back(where + ": no such operator" +
                        (nearest.empty() ? "" : "; the nearest that is supported is \"" + nearest + "\""));
    return;
  }
  CheckArguments(where, op, *info, problems);
  CheckVariables(where, op, vars, problems);
  CheckAttributes(where, op, *info, registry, problems);
}

}  // namespace millrace
