#include <algorithm>
#include <array>

#include "program/expansion.h"
#include "program/op_registry.h"

namespace millrace {
namespace {

bool HasAny(const NameNumbers& some, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return some.Has(name); });
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The gradient operator that GradArgs describe; none when no gradient arrives or none is wanted.
std::vector<OpDesc> GradFromArgs(const GradContext& context) {
  const GradArgs& args = *context.op().info().grad_args;
  const bool arrives =
      std::any_of(args.of.begin(), args.of.end(), [&](const std::string& name) { return context.Has(name); });
  const bool is_wanted =
      std::any_of(args.to.begin(), args.to.end(), [&](const std::string& name) { return context.Wants(name); });
  if (!arrives || !is_wanted) return {};
  std::vector<OpDesc> gradient;  // of which a list of initializers would be a copy
  gradient.push_back(context.GradOp(args.inputs, args.outputs, args.of, args.to));
  return gradient;
}

/// Null: there is none.
const ArgInfo* FindArgument(const std::vector<ArgInfo>& arguments, const std::string& name) {
  const auto it =
      std::find_if(arguments.begin(), arguments.end(), [&](const ArgInfo& arg) { return arg.name == name; });
  return it == arguments.end() ? nullptr : &*it;
}

ArgInfo GradientOf(const ArgInfo& arg, bool optional) {
  return {GradName(arg.name), (arg.duplicable ? "gradients of " : "gradient of ") + arg.name, arg.duplicable, optional};
}

}  // namespace

std::string GradName(std::string_view name) { return std::string(name) + "@GRAD"; }

bool GradContext::Wants(std::string_view input) const { return HasAny(*wanted_, InputArguments(op_->desc(), input)); }

bool GradContext::Has(std::string_view output) const { return HasAny(*have_, OutputArguments(op_->desc(), output)); }

OpDesc GradContext::GradOp(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                           const std::vector<std::string>& grad_of, const std::vector<std::string>& wanted) const {
  OpDesc grad;
  grad.set_type(op_->type() + "_grad");
  for (const OpDesc::Attr& attr : op_->desc().attrs()) *grad.add_attrs() = attr;
  for (const std::string& name : inputs) SetInput(grad, name, InputArguments(op_->desc(), name));
  for (const std::string& name : outputs) SetInput(grad, name, OutputArguments(op_->desc(), name));
  for (const std::string& name : grad_of) {
    std::vector<std::string> gradients;
    const std::vector<std::string> arguments = OutputArguments(op_->desc(), name);
    for (const std::string& argument : arguments) {
      // Of a list, parts that nothing was computed from have no gradient.
      const bool arrives = arguments.size() == 1 || have_->Has(argument);
      gradients.push_back(arrives ? GradName(argument) : std::string(kEmptyVar));
    }
    SetInput(grad, GradName(name), gradients);
  }
  for (const std::string& name : wanted) {
    std::vector<std::string> gradients;
    bool any = false;
    for (const std::string& argument : InputArguments(op_->desc(), name)) {
      const bool wants = wanted_->Has(argument);
      gradients.push_back(wants ? GradName(argument) : std::string(kEmptyVar));
      any = any || wants;
    }
    if (any) SetOutput(grad, GradName(name), gradients);
  }
  return grad;
}

OpBuilder& OpBuilder::Grad(GradArgs args) {
  info_->grad = GradFromArgs;
  info_->grad_args = std::move(args);
  return *this;
}

OpBuilder OpRegistry::AddGradient(const std::string& type) {
  OpBuilder builder = Add(type + "_grad");
  OpInfo& info = *ops_.find(type + "_grad")->second;
  // What has no shape rule is refused, by a plugin's author as well.
  const OpInfo* forward = Find(type);
  if (forward == nullptr || !forward->grad_args) return builder;
  const GradArgs& args = *forward->grad_args;
  bool is_whole = true;
  const auto argument = [&is_whole](const std::vector<ArgInfo>& arguments, const std::string& name) {
    const ArgInfo* found = FindArgument(arguments, name);
    is_whole = is_whole && found != nullptr;
    return found == nullptr ? ArgInfo() : *found;
  };
  const auto reads = [&](const ArgInfo& arg, bool optional) {
    const bool is_read = !Contains(args.unread, arg.name);
    info.inputs.push_back({arg.name, is_read ? "of the forward operator" : "of the forward operator; not read",
                           arg.duplicable, optional || !is_read || Contains(args.optional, arg.name), is_read});
  };
  for (const std::string& name : args.inputs) {
    const ArgInfo arg = argument(forward->inputs, name);
    reads(arg, arg.optional && !arg.for_gradient);
  }
  for (const std::string& name : args.outputs) reads(argument(forward->outputs, name), false);
  for (const std::string& name : args.of) {
    info.inputs.push_back(GradientOf(argument(forward->outputs, name), args.of.size() > 1));
  }
  for (const std::string& name : args.to) {
    info.outputs.push_back(GradientOf(argument(forward->inputs, name), args.to.size() > 1));
  }
  info.attrs = forward->attrs;
  info.is_fused = forward->is_fused;
  if (forward->expand != nullptr) info.expand = ExpandGradient;
  if (!is_whole) return builder;
  return builder.Doc("Gradient of " + type + ".").InferShape(InferGradients).Gradient();
}

Status InferGradients(InferShapeContext& context) {
  constexpr std::string_view kSuffix = "@GRAD";
  for (const OpDesc::Var& output : context.op().desc().outputs()) {
    if (output.arguments_size() == 0) continue;  // how Paddle writes a gradient that nobody wants
    std::string of = output.parameter();
    if (of.size() > kSuffix.size() && of.ends_with(kSuffix)) of.resize(of.size() - kSuffix.size());
    const std::array<std::string, 3> sources = {of, "Out", "Out@GRAD"};
    const auto source = std::find_if(sources.begin(), sources.end(),
                                     [&](const std::string& parameter) { return context.HasInput(parameter); });
    if (source == sources.end()) {
      return context.Error("the shape of " + output.parameter() + " is that of " + of +
                           ", Out or Out@GRAD, and none of them is bound");
    }
    MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs(*source));
    for (int i = 0; i < output.arguments_size(); ++i) {
      VarMeta meta = metas[static_cast<size_t>(i) < metas.size() ? static_cast<size_t>(i) : 0];
      context.SetOutput(output.parameter(), meta, i);
    }
  }
  return Status::Ok();
}

}  // namespace millrace
