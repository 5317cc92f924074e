#include "program/expansion.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/harmless_text.h"
#include "core/name_numbers.h"
#include "program/backward.h"
#include "program/block_builder.h"

namespace millrace {
namespace {

std::string FirstOutput(const OpDesc& op) {
  std::string first;
  ForEachArgument(op.outputs(), [&first](const std::string& name) { first = first.empty() ? name : first; });
  return first.empty() ? op.type() : first;
}

bool IsRead(const OpDesc& op, const std::string& variable) {
  bool is_read = false;
  ForEachArgument(op.inputs(), [&](const std::string& name) { is_read = is_read || name == variable; });
  return is_read;
}

/// Whether appended operators write the output: those that must be there, and those that the gradient reads.
bool IsWritten(const OpInfo& info, const ArgInfo& output) {
  const bool for_gradient =
      info.grad_args && std::count(info.grad_args->outputs.begin(), info.grad_args->outputs.end(), output.name) > 0;
  return !output.optional || for_gradient;
}

}  // namespace

Expansion::Expansion(const OpView& op, const VarMetas& vars, const OpRegistry& registry, int first_number)
    : InferShapeContext(op, known_, registry), prefix_(FirstOutput(op.desc())), next_number_(first_number) {
  ForEachArgument(op.desc().inputs(), [&](const std::string& name) {
    if (const auto meta = vars.find(name); meta != vars.end()) known_.insert(*meta);
  });
}

std::string Expansion::In(std::string_view parameter, size_t i) const {
  const std::vector<std::string> names = InputArguments(op().desc(), parameter);
  return i < names.size() && names[i] != kEmptyVar ? names[i] : "";
}

const VarMeta& Expansion::Meta(const std::string& variable) const {
  static const VarMeta kUnknown;
  const auto meta = known_.find(variable);
  return meta == known_.end() ? kUnknown : meta->second;
}

std::string Expansion::Add(const std::string& type, const Arguments& inputs, const Attributes& attrs) {
  return AddList(type, inputs, attrs, 1).front();
}

std::vector<std::string> Expansion::AddList(const std::string& type, const Arguments& inputs, const Attributes& attrs,
                                            size_t count) {
  const OpInfo* const info = registry().Find(type);
  if (status_.ok() && (info == nullptr || info->kernels.empty())) {
    status_ = Internal(op().type() + " consists of operators that have no kernel: " + type);
  }
  if (!status_.ok()) return std::vector<std::string>(count);
  OpDesc part;
  part.set_type(type);
  for (const Argument& input : inputs) {
    std::vector<std::string> variables = input.variables;
    std::erase(variables, "");
    if (!variables.empty()) SetInput(part, input.parameter, variables);
  }
  std::vector<std::string> first;
  for (const ArgInfo& output : info->outputs) {
    if (!first.empty() && !IsWritten(*info, output)) continue;
    std::vector<std::string> names(output.duplicable ? count : 1);
    std::generate(names.begin(), names.end(), [this] { return NewName(); });
    millrace::SetOutput(part, output.name, names);
    if (first.empty()) first = std::move(names);
  }
  for (const auto& [name, value] : attrs) SetAttr(part, name, value);
  Append(std::move(part));
  first.resize(count);
  return first;
}

void Expansion::Append(OpDesc part) {
  if (!status_.ok()) return;
  const OpView view(part, *registry().Find(part.type()));
  status_ = InferShapes(view, known_, registry(), &op());
  ForEachArgument(part.outputs(), [this](const std::string& name) { made_.vars[name] = known_[name]; });
  made_.ops.push_back(std::move(part));
}

void Expansion::SetOut(std::string_view parameter, const std::string& variable, size_t i) {
  const std::vector<std::string> names = OutputArguments(op().desc(), parameter);
  if (i < names.size() && names[i] != kEmptyVar) outs_.emplace_back(names[i], variable);
}

void Expansion::ExpectEqualShapes(const std::vector<std::string_view>& parameters) {
  for (const std::string_view parameter : parameters) ExpectEqualShape(In(parameters[0]), In(parameter));
}

void Expansion::ExpectEqualShape(const std::string& one, const std::string& other) {
  if (!status_.ok() || one == other) return;
  made_.equal_shapes.emplace_back(one, other);
  if (MayEqual(Meta(one).dims, Meta(other).dims)) return;
  status_ = Error("shapes differ: \"" + one + "\" " + Meta(one).dims.ToString() + ", \"" + other + "\" " +
                  Meta(other).dims.ToString());
}

void Expansion::Rename(const std::string& from, const std::string& to) {
  for (OpDesc& part : made_.ops) {
    for (auto* bindings : {part.mutable_inputs(), part.mutable_outputs()}) {
      for (OpDesc::Var& binding : *bindings) {
        std::replace(binding.mutable_arguments()->begin(), binding.mutable_arguments()->end(), from, to);
      }
    }
  }
  for (auto& [one, other] : made_.equal_shapes) other = other == from ? to : other;
  known_[to] = known_[from];
  made_.vars[to] = known_[from];
  made_.vars.erase(from);
}

Result<ExpandedOp> Expansion::Finish() && {
  MR_TRY(status_);
  size_t bound = 0;
  for (const ArgInfo& output : op().info().outputs) {
    const std::vector<std::string> names = OutputArguments(op().desc(), output.name);
    if (output.is_used) bound += names.size() - static_cast<size_t>(std::count(names.begin(), names.end(), kEmptyVar));
  }
  if (bound != outs_.size()) return Internal(op().type() + ": its expansion does not set all outputs");
  std::map<std::string, std::string> renamed;
  for (const auto& [out, variable] : outs_) {
    const auto held = renamed.find(variable);
    const std::string& from = held == renamed.end() ? variable : held->second;
    // An output in the variable of an input is written when nothing reads the input any more.
    const bool is_own = held == renamed.end() && made_.vars.contains(variable) && !IsRead(op().desc(), out);
    if (is_own) {
      Rename(variable, out);
      renamed[variable] = out;
      continue;
    }
    OpDesc copy;
    copy.set_type("assign");
    SetInput(copy, "X", {from});
    millrace::SetOutput(copy, "Out", {out});
    Append(std::move(copy));
  }
  MR_TRY(status_);
  made_.temporaries = made_.vars;
  for (const auto& [out, variable] : outs_) made_.temporaries.erase(out);
  return std::move(made_);
}

Result<ExpandedOp> ExpandOp(const OpView& op, const VarMetas& vars, const OpRegistry& registry, int first_number) {
  Expansion expansion(op, vars, registry, first_number);
  try {
    Status expanded = op.info().expand(expansion);
    if (!expanded.ok()) return op.info().plugin.empty() ? std::move(expanded) : Harmless(expanded);
    return std::move(expansion).Finish();
  } catch (...) {
    return OperatorThrew(op.info()).Context(op.type());
  }
}

namespace {

/// The forward operator of a gradient operator, in variables of its own: PARAMETER#i.
struct Forward {
  OpDesc op;
  VarMetas metas;                            ///< of its inputs
  std::map<std::string, std::string> names;  ///< in the program, of what the gradient operator reads
  NameNumbers arriving;                      ///< outputs whose gradient is there
  std::vector<std::string> wanted;           ///< inputs whose gradient is to be made
};

bool IsBound(const std::vector<std::string>& arguments, size_t i) {
  return i < arguments.size() && arguments[i] != kEmptyVar;
}

Forward ForwardOf(const Expansion& expansion, const OpInfo& info) {
  const OpDesc& gradient = expansion.op().desc();
  Forward forward;
  forward.op.set_type(info.type);
  *forward.op.mutable_attrs() = gradient.attrs();
  for (const ArgInfo& input : info.inputs) {
    const std::vector<std::string> read = InputArguments(gradient, input.name);
    const std::vector<std::string> gradients = OutputArguments(gradient, GradName(input.name));
    std::vector<std::string> own;
    for (size_t i = 0; i < read.size(); ++i) {
      own.push_back(input.name + "#" + std::to_string(i));
      forward.names[own[i]] = read[i];
      forward.metas[own[i]] = expansion.Meta(read[i]);
      if (IsBound(gradients, i)) forward.wanted.push_back(own[i]);
    }
    if (!own.empty()) SetInput(forward.op, input.name, own);
  }
  for (const ArgInfo& output : info.outputs) {
    const std::vector<std::string> read = InputArguments(gradient, output.name);
    const std::vector<std::string> gradients = InputArguments(gradient, GradName(output.name));
    std::vector<std::string> own(std::max({size_t{1}, read.size(), gradients.size()}));
    for (size_t i = 0; i < own.size(); ++i) {
      own[i] = output.name + "#" + std::to_string(i);
      if (IsBound(read, i)) forward.names[own[i]] = read[i];
      if (!IsBound(gradients, i)) continue;
      forward.arriving.Add(own[i]);
      forward.names[GradName(own[i])] = gradients[i];
    }
    SetOutput(forward.op, output.name, own);
  }
  return forward;
}

/// Those of `ops` from which `gradients` read what is not in `names`, in their order.
std::vector<OpDesc> NeededOps(const std::vector<OpDesc>& ops, const std::vector<OpDesc>& gradients,
                              const std::map<std::string, std::string>& names) {
  std::set<std::string, std::less<>> needed;
  const auto need = [&](const OpDesc& op) {
    ForEachArgument(op.inputs(), [&](const std::string& name) {
      if (!names.contains(name)) needed.insert(name);
    });
  };
  for (const OpDesc& op : gradients) need(op);
  std::vector<OpDesc> kept;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (!Writes(*op, needed)) continue;
    kept.push_back(*op);
    need(*op);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

Status ExpandGradient(Expansion& expansion) {
  const OpInfo& info = *expansion.registry().ForwardOf(expansion.op().info());
  Forward forward = ForwardOf(expansion, info);
  auto expanded = ExpandOp(OpView(forward.op, info), forward.metas, expansion.registry());
  if (!expanded.ok()) return std::move(expanded).Context(expansion.op().type()).status();
  VarMetas metas = expanded->vars;
  metas.insert(forward.metas.begin(), forward.metas.end());
  MR_ASSIGN(const std::vector<OpDesc> gradients,
            GradientsOf(expanded->ops, metas, std::move(forward.arriving), forward.wanted, expansion.registry()));
  std::map<std::string, std::string>& names = forward.names;
  std::vector<OpDesc> ops = NeededOps(expanded->ops, gradients, names);
  ops.insert(ops.end(), gradients.begin(), gradients.end());
  for (OpDesc& op : ops) {
    std::string unread;
    for (OpDesc::Var& input : *op.mutable_inputs()) {
      for (std::string& name : *input.mutable_arguments()) {
        const auto known = names.find(name);
        if (known == names.end() && name != kEmptyVar) unread = name;
        if (known != names.end()) name = known->second;
      }
    }
    if (!unread.empty()) {
      return Internal(expansion.op().type() + " needs \"" + unread + "\" of " + info.type +
                      ", which it does not read; give it an expansion or a kernel of its own");
    }
    for (OpDesc::Var& output : *op.mutable_outputs()) {
      for (std::string& name : *output.mutable_arguments()) {
        if (name != kEmptyVar) name = names[name] = expansion.NewName();
      }
    }
    expansion.Append(std::move(op));
  }
  for (const OpDesc::Var& input : forward.op.inputs()) {
    const std::vector<std::string> outs = OutputArguments(expansion.op().desc(), GradName(input.parameter()));
    for (int i = 0; i < input.arguments_size(); ++i) {
      const std::string& name = input.arguments(i);
      if (!IsBound(outs, static_cast<size_t>(i))) continue;
      const auto made = names.find(GradName(name));
      const std::string gradient =
          made != names.end() ? made->second : expansion.Add("fill_zeros_like", {{"X", names[name]}});
      expansion.SetOut(GradName(input.parameter()), gradient, static_cast<size_t>(i));
    }
  }
  return Status::Ok();
}

}  // namespace millrace
