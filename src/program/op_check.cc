#include "program/op_check.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/edit_distance.h"

namespace millrace {
namespace {

using Bindings = google::protobuf::RepeatedPtrField<OpDesc::Var>;

/// `"a", "b"`, as messages show the variables of a list.
std::string ShownNames(const OpDesc::Var& binding) {
  constexpr int kShown = 4;
  std::string text;
  for (int i = 0; i < std::min(binding.arguments_size(), kShown); ++i) {
    text += (text.empty() ? "\"" : ", \"") + binding.arguments(i) + "\"";
  }
  return text + (binding.arguments_size() > kShown ? ", ..." : "");
}

const OpDesc::Var* FindBound(const Bindings& bindings, std::string_view parameter) {
  for (const OpDesc::Var& binding : bindings) {
    if (binding.parameter() == parameter && binding.arguments_size() > 0) return &binding;
  }
  return nullptr;
}

bool RunsBlock(const OpInfo& info) {
  return std::any_of(info.attrs.begin(), info.attrs.end(), [](const AttrInfo& attr) { return attr.is_block; });
}

/// Checks one operator; each mistake becomes a message.
class OpCheck {
 public:
  OpCheck(const std::string& where, const OpDesc& op, const OpInfo& info, std::vector<std::string>* problems)
      : where_(where), op_(op), info_(info), problems_(problems) {}

  void Arguments() {
    CheckSide("input", op_.inputs(), info_.inputs, false);
    // Gradients of inputs that nobody wants stay unbound.
    CheckSide("output", op_.outputs(), info_.outputs, info_.is_gradient);
    // What fusion makes has one gradient for all places of a variable in a list.
    if (info_.is_gradient && !info_.is_fused) {
      CheckGradientCounts(op_.inputs());
      CheckGradientCounts(op_.outputs());
    }
    // What an operator with a block lists is what the block's operators write.
    if (!RunsBlock(info_)) CheckDistinctOutputs();
    if (info_.is_apart) CheckApart();
  }
  void Variables(const VarMetas& vars);
  void Attributes(const OpRegistry& registry);

 private:
  void Add(const std::string& problem) { problems_->push_back(where_ + ": " + problem); }
  void CheckSide(const char* kind, const Bindings& bindings, const std::vector<ArgInfo>& args, bool all_optional);
  void CheckGradientCounts(const Bindings& gradients);
  void CheckDistinctOutputs();
  void CheckApart();
  void CheckBlock(const OpDesc::Attr& attr, const AttrInfo* known);

  const std::string& where_;
  const OpDesc& op_;
  const OpInfo& info_;
  std::vector<std::string>* problems_;
};

void OpCheck::CheckSide(const char* kind, const Bindings& bindings, const std::vector<ArgInfo>& args,
                        bool all_optional) {
  for (const ArgInfo& arg : args) {
    const OpDesc::Var* bound = FindBound(bindings, arg.name);
    // Only where something is wrong: there may be a million operators to check.
    const auto what = [&] { return std::string(kind) + " " + arg.name; };
    if (bound == nullptr && !arg.optional && !all_optional) Add(what() + " is not bound");
    if (bound != nullptr && !arg.duplicable && bound->arguments_size() > 1) {
      Add(what() + " takes one variable, and " + std::to_string(bound->arguments_size()) +
          " are bound to it: " + ShownNames(*bound));
    }
    // Of gradients that arrive, some of a list may be missing.
    const bool is_read = info_.is_gradient && kind == std::string_view("input") && !arg.optional;
    if (bound != nullptr && is_read && !arg.name.ends_with("@GRAD") &&
        std::count(bound->arguments().begin(), bound->arguments().end(), kEmptyVar) > 0) {
      Add(what() + " is read, and \"@EMPTY@\" stands for no variable");
    }
  }
  for (int i = 0; i < bindings.size(); ++i) {
    const std::string& parameter = bindings[i].parameter();
    const auto is_parameter = [&parameter](const auto& other) { return other.parameter() == parameter; };
    if (std::any_of(bindings.begin(), bindings.begin() + i, is_parameter)) {
      Add(std::string(kind) + " " + parameter + " is bound twice");
      continue;
    }
    const bool known =
        std::any_of(args.begin(), args.end(), [&parameter](const ArgInfo& arg) { return arg.name == parameter; });
    if (known || bindings[i].arguments_size() == 0) continue;
    std::vector<std::string_view> names;
    for (const ArgInfo& arg : args) names.push_back(arg.name);
    Add("there is no " + std::string(kind) + " \"" + parameter + "\"" + DidYouMean(parameter, names));
  }
}

/// The gradients of a list's variables are as many as these.
void OpCheck::CheckGradientCounts(const Bindings& gradients) {
  constexpr std::string_view kSuffix = "@GRAD";
  for (const OpDesc::Var& binding : gradients) {
    if (!std::string_view(binding.parameter()).ends_with(kSuffix) || binding.arguments_size() == 0) continue;
    const std::string of = binding.parameter().substr(0, binding.parameter().size() - kSuffix.size());
    const OpDesc::Var* list = FindBound(op_.inputs(), of);
    if (list == nullptr || list->arguments_size() == binding.arguments_size()) continue;
    Add(std::to_string(binding.arguments_size()) + " variables are bound to " + binding.parameter() + " and " +
        std::to_string(list->arguments_size()) + " to " + of +
        ", whose gradients they are; \"@EMPTY@\" stands for one that nobody wants");
  }
}

/// A kernel writes its outputs one after the other: of two in one variable, the second takes the first one's memory.
void OpCheck::CheckDistinctOutputs() {
  std::set<std::string_view> seen;
  for (const OpDesc::Var& binding : op_.outputs()) {
    for (const std::string& name : binding.arguments()) {
      if (name == kEmptyVar || seen.insert(name).second) continue;
      Add("output " + binding.parameter() + ": variable \"" + name + "\" is an output of the operator already");
    }
  }
}

void OpCheck::CheckApart() {
  std::set<std::string_view> read;
  for (const OpDesc::Var& binding : op_.inputs()) {
    read.insert(binding.arguments().begin(), binding.arguments().end());
  }
  for (const OpDesc::Var& binding : op_.outputs()) {
    const auto is_output = [&binding](const ArgInfo& arg) { return arg.name == binding.parameter(); };
    const auto output = std::find_if(info_.outputs.begin(), info_.outputs.end(), is_output);
    if (output != info_.outputs.end() && !output->is_used) continue;
    for (const std::string& name : binding.arguments()) {
      if (name == kEmptyVar || !read.contains(name)) continue;
      Add("output " + binding.parameter() + ": variable \"" + name +
          "\" is an input of the operator as well, which reads on while it writes; write another one, and assign it");
    }
  }
}

void OpCheck::Variables(const VarMetas& vars) {
  for (const OpDesc::Var& binding : op_.inputs()) {
    for (const std::string& name : binding.arguments()) {
      if (name == kEmptyVar || vars.contains(name)) continue;
      std::vector<std::string_view> names;
      for (const auto& [known, meta] : vars) names.push_back(known);
      Add("input " + binding.parameter() + ": there is no variable \"" + name + "\"" + DidYouMean(name, names));
    }
  }
}

/// True when an attribute as written can be read as the type it is registered with.
bool FitsAttr(AttrType written, const AttrValue& registered) {
  const auto is = [&registered]<class... T>() { return (std::holds_alternative<T>(registered) || ...); };
  switch (written) {
    case INT:
    case LONG: return is.operator()<int64_t, float, bool>();
    case BOOLEAN: return is.operator()<int64_t, bool>();
    case FLOAT:
    case FLOAT64: return is.operator()<float, std::vector<float>>();
    case STRING:
    case VAR: return is.operator()<std::string>();
    case INTS:
    case LONGS:
    case BOOLEANS: return is.operator()<std::vector<int64_t>>();
    case FLOATS:
    case FLOAT64S: return is.operator()<std::vector<float>>();
    case STRINGS:
    case VARS: return is.operator()<std::vector<std::string>>();
    default: return false;
  }
}

/// An attribute that names a block, or should.
void OpCheck::CheckBlock(const OpDesc::Attr& attr, const AttrInfo* known) {
  const std::string what = "attribute \"" + attr.name() + "\"";
  if (known == nullptr || !known->is_block) {
    Add(what + " names a block, and " + op_.type() + " has no such block to run");
  } else if (attr.type() != BLOCK) {
    Add(what + " must be of type BLOCK, not " + AttrType_Name(attr.type()));
  } else if (attr.block_idx() < 0) {
    Add(what + ": there is no block " + std::to_string(attr.block_idx()));
  }
}

void OpCheck::Attributes(const OpRegistry& registry) {
  // A gradient carries the attributes of its forward operator, which is checked itself.
  const OpInfo* forward = registry.ForwardOf(info_);
  std::set<std::string_view> seen;
  for (const OpDesc::Attr& attr : op_.attrs()) {
    const AttrInfo* known = info_.FindAttr(attr.name());
    const AttrInfo* carried = known != nullptr || forward == nullptr ? nullptr : forward->FindAttr(attr.name());
    const auto what = [&] { return "attribute \"" + attr.name() + "\""; };
    if (!seen.insert(attr.name()).second) {
      // Paddle itself repeats hints: the concat of a split's gradient has use_mkldnn twice.
      const bool repeats = FindAttr(op_, attr.name())->SerializeAsString() == attr.SerializeAsString();
      if (!repeats && !IsHintAttr(attr.name())) Add(what() + " is given twice");
    } else if (attr.type() == BLOCK || attr.type() == BLOCKS || (known != nullptr && known->is_block)) {
      CheckBlock(attr, known);
    } else if (known == nullptr) {
      if (carried != nullptr && !FitsAttr(attr.type(), carried->default_value)) {
        Add(what() + " must not be of type " + AttrType_Name(attr.type()));
      }
      if (IsHintAttr(attr.name()) || carried != nullptr) continue;
      std::vector<std::string_view> names;
      for (const AttrInfo& other : info_.attrs) names.push_back(other.name);
      Add(what() + " is not supported" + DidYouMean(attr.name(), names));
    } else if (!FitsAttr(attr.type(), known->default_value)) {
      Add(what() + " must not be of type " + AttrType_Name(attr.type()));
    } else if (const AttrValue value = OpView(op_, info_).Value(attr.name());
               known->fixed && value != known->default_value) {
      Add(what() + " is " + ShowAttr(value) + "; only " + ShowAttr(known->default_value) + " is supported");
    }
  }
  for (const AttrInfo& attr : info_.attrs) {
    if (attr.required && !seen.contains(attr.name)) Add("attribute \"" + attr.name + "\" is missing: " + attr.doc);
  }
}

}  // namespace

void CheckOp(const std::string& where, const OpDesc& op, const VarMetas& vars, const OpRegistry& registry,
             std::vector<std::string>* problems) {
  const OpInfo* info = registry.Find(op.type());
  if (info == nullptr) {
    constexpr std::string_view kGrad = "_grad";
    const std::string forward = op.type().ends_with(kGrad) ? op.type().substr(0, op.type().size() - kGrad.size()) : "";
    if (const OpInfo* of = forward.empty() ? nullptr : registry.Find(forward); of != nullptr) {
      problems->push_back(where + ": no such operator, as \"" + forward + "\"" +
                          (of->plugin.empty() ? "" : " of plugin \"" + of->plugin + "\"") +
                          " has no gradient here; write what is learned without it, or mark its outputs stop_gradient");
      return;
    }
    const std::string nearest = registry.Nearest(op.type());
    problems->push_back(where + ": no such operator" +
                        (nearest.empty() ? "" : "; the nearest that is supported is \"" + nearest + "\""));
    return;
  }
  OpCheck check(where, op, *info, problems);
  check.Arguments();
  check.Variables(vars);
  check.Attributes(registry);
}

Status CheckWithoutEffects(const ProgramDesc& program, const OpRegistry& registry) {
  std::string problems;
  for (int block = 0; block < program.blocks_size(); ++block) {
    const auto& ops = program.blocks(block).ops();
    for (int i = 0; i < ops.size(); ++i) {
      const OpInfo* info = registry.Find(ops[i].type());
      if (info == nullptr || info->effect.empty()) continue;
      problems += (problems.empty() ? "block " : "\nblock ") + std::to_string(block) + " op[" + std::to_string(i) +
                  "] " + ops[i].type() + ": it " + info->effect;
    }
  }
  if (problems.empty()) return Status::Ok();
  return InvalidConfig(problems + "\nthe operators of a saved model compute, and nothing else: save it without these");
}

}  // namespace millrace
