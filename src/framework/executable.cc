#include "framework/executable.h"

#include <algorithm>
#include <set>

#include "core/edit_distance.h"
#include "framework/passes/fusion.h"
#include "framework/var_meta.h"

namespace millrace {
namespace {

std::string Where(size_t index, const OpDesc& op) { return "block 0 op[" + std::to_string(index) + "] " + op.type(); }

/// Collects one message a line.
class Problems {
 public:
  void Add(const std::string& message) {
    if (!text_.empty()) text_ += '\n';
    text_ += message;
  }
  Status ToStatus() const { return text_.empty() ? Status::Ok() : InvalidConfig(text_); }

 private:
  std::string text_;
};

void CheckArguments(size_t index, const OpDesc& op, const OpInfo& info, Problems& problems) {
  const auto check = [&](const auto& bindings, const std::vector<ArgInfo>& args, const char* kind) {
    for (const ArgInfo& arg : args) {
      const bool bound = std::any_of(bindings.begin(), bindings.end(), [&](const OpDesc::Var& binding) {
        return binding.parameter() == arg.name && binding.arguments_size() > 0;
      });
      if (!bound && !arg.optional) problems.Add(Where(index, op) + ": " + kind + " " + arg.name + " is not bound");
    }
    for (const OpDesc::Var& binding : bindings) {
      const auto it =
          std::find_if(args.begin(), args.end(), [&](const ArgInfo& arg) { return arg.name == binding.parameter(); });
      if (it != args.end() || binding.arguments_size() == 0) continue;
      std::vector<std::string_view> names;
      for (const ArgInfo& arg : args) names.push_back(arg.name);
      problems.Add(Where(index, op) + ": there is no " + kind + " \"" + binding.parameter() + "\"" +
                   DidYouMean(binding.parameter(), names));
    }
  };
  check(op.inputs(), info.inputs, "input");
  // Gradients of inputs that nobody wants stay unbound.
  if (!info.is_gradient) check(op.outputs(), info.outputs, "output");
}

void CheckVariables(size_t index, const OpDesc& op, const VarMetas& vars, Problems& problems) {
  for (const OpDesc::Var& binding : op.inputs()) {
    for (const std::string& name : binding.arguments()) {
      if (name == kEmptyVar || vars.contains(name)) continue;
      std::vector<std::string_view> names;
      for (const auto& [known, meta] : vars) names.push_back(known);
      problems.Add(Where(index, op) + ": input " + binding.parameter() + ": there is no variable \"" + name + "\"" +
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
    case FLOAT64: return is.operator()<float>();
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

void CheckAttributes(size_t index, const OpDesc& op, const OpInfo& info, Problems& problems) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    const AttrInfo* known = info.FindAttr(attr.name());
    if (known == nullptr || FitsAttr(attr.type(), known->default_value)) continue;
    problems.Add(Where(index, op) + ": attribute \"" + attr.name() + "\" must not be of type " +
                 AttrType_Name(attr.type()));
  }
}

bool Writes(const OpDesc& op, const std::set<std::string, std::less<>>& names) {
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (names.contains(name)) return true;
    }
  }
  return false;
}

/// Keeps the operators that `fetches` need, but for gradients and optimizers.
std::vector<OpDesc> KeepForward(const std::vector<OpDesc>& ops, const OpRegistry& registry,
                                const std::vector<std::string>& fetches) {
  std::set<std::string, std::less<>> needed(fetches.begin(), fetches.end());
  std::vector<OpDesc> kept;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const OpInfo* info = registry.Find(op->type());
    if (info != nullptr && (info->is_gradient || info->is_optimizer)) continue;
    if (!Writes(*op, needed)) continue;
    for (const OpDesc::Var& input : op->inputs()) {
      needed.insert(input.arguments().begin(), input.arguments().end());
    }
    kept.push_back(*op);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

bool IsSkipped(const OpDesc& op, const std::vector<std::string>& skip_ops) {
  return std::any_of(skip_ops.begin(), skip_ops.end(),
                     [&](const std::string& part) { return op.type().find(part) != std::string::npos; });
}

}  // namespace

Result<std::unique_ptr<const Executable>> Executable::Compile(const ProgramDesc& program, const OpRegistry& registry,
                                                              const CompileOptions& options) {
  if (program.blocks_size() == 0) return InvalidConfig("the program has no blocks");
  std::unique_ptr<Executable> executable(new Executable);
  executable->program_ = program;
  executable->registry_ = &registry;
  const BlockDesc& block = program.blocks(0);
  Problems problems;
  for (const VarDesc& var : block.vars()) {
    Result<VarMeta> meta = ToMeta(var);
    if (meta.ok()) executable->vars_[var.name()] = *meta;
    if (!meta.ok()) problems.Add(meta.status().message());
  }

  std::vector<OpDesc> ops;
  for (const OpDesc& op : block.ops()) {
    if (!IsSkipped(op, options.skip_ops)) ops.push_back(op);
  }
  if (options.forward_only) ops = KeepForward(ops, registry, options.fetches);

  for (size_t i = 0; i < ops.size(); ++i) {
    const OpInfo* info = registry.Find(ops[i].type());
    if (info == nullptr) {
      const std::string nearest = registry.Nearest(ops[i].type());
      problems.Add(Where(i, ops[i]) + ": no such operator" +
                   (nearest.empty() ? "" : "; the nearest that is supported is \"" + nearest + "\""));
      continue;
    }
    CheckArguments(i, ops[i], *info, problems);
    CheckVariables(i, ops[i], executable->vars_, problems);
    CheckAttributes(i, ops[i], *info, problems);
  }
  MR_TRY(problems.ToStatus());
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpView view(ops[i], *registry.Find(ops[i].type()));
    InferShapeContext context(view, executable->vars_);
    if (Status s = view.info().infer_shape(context); !s.ok()) {
      problems.Add("block 0 op[" + std::to_string(i) + "] " + s.message());
    }
  }
  MR_TRY(problems.ToStatus());
  for (const std::string& fetch : options.fetches) {
    if (executable->vars_.contains(fetch)) continue;
    std::vector<std::string_view> names;
    for (const auto& [known, meta] : executable->vars_) names.push_back(known);
    problems.Add("there is no variable \"" + fetch + "\" to fetch" + DidYouMean(fetch, names));
  }
  MR_TRY(problems.ToStatus());
  if (options.fuse) MR_TRY(ApplyFusionPasses(ops, executable->vars_, registry, options.fetches));
  executable->ops_ = std::move(ops);
  return std::unique_ptr<const Executable>(std::move(executable));
}

std::string PrintOps(const std::vector<OpDesc>& ops) {
  std::string text = "len(ops)=" + std::to_string(ops.size()) + "\n";
  for (size_t i = 0; i < ops.size(); ++i) text += "op[" + std::to_string(i) + "]->Type(): " + ops[i].type() + "\n";
  return text;
}

}  // namespace millrace
