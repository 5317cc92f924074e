#include "program/op_registry.h"

#include <glog/logging.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "core/edit_distance.h"
#include "core/exception_text.h"
#include "core/harmless_text.h"
#include "core/lower_case.h"
#include "program/expansion.h"
#include "program/var_meta.h"

namespace millrace {
namespace {

using Bindings = google::protobuf::RepeatedPtrField<OpDesc::Var>;

const OpDesc::Var* FindBinding(const Bindings& bindings, std::string_view parameter) {
  for (const OpDesc::Var& binding : bindings) {
    if (binding.parameter() == parameter) return &binding;
  }
  return nullptr;
}

/// True when the first variable of a list is one; a list may be long, and is not copied.
bool IsBound(const Bindings& bindings, std::string_view parameter) {
  const OpDesc::Var* binding = FindBinding(bindings, parameter);
  return binding != nullptr && !binding->arguments().empty() && binding->arguments(0) != kEmptyVar;
}

std::vector<std::string> Arguments(const Bindings& bindings, std::string_view parameter) {
  const OpDesc::Var* binding = FindBinding(bindings, parameter);
  if (binding == nullptr) return {};
  return {binding->arguments().begin(), binding->arguments().end()};
}

void Bind(Bindings& bindings, std::string_view parameter, const std::vector<std::string>& arguments) {
  auto* binding = const_cast<OpDesc::Var*>(FindBinding(bindings, parameter));
  if (binding == nullptr) {
    binding = bindings.Add();
    binding->set_parameter(std::string(parameter));
  }
  binding->clear_arguments();
  for (const std::string& argument : arguments) binding->add_arguments(argument);
}

AttrValue FromDesc(const OpDesc::Attr& attr) {
  switch (attr.type()) {
    case INT: return static_cast<int64_t>(attr.i());
    case LONG: return attr.l();
    case BLOCK: return static_cast<int64_t>(attr.block_idx());
    case FLOAT: return attr.f();
    case FLOAT64: return static_cast<float>(attr.float64());
    case BOOLEAN: return attr.b();
    case STRING: return attr.s();
    case VAR: return attr.var_name();
    case INTS: return std::vector<int64_t>(attr.ints().begin(), attr.ints().end());
    case LONGS: return std::vector<int64_t>(attr.longs().begin(), attr.longs().end());
    case BLOCKS: return std::vector<int64_t>(attr.blocks_idx().begin(), attr.blocks_idx().end());
    case BOOLEANS: return std::vector<int64_t>(attr.bools().begin(), attr.bools().end());
    case FLOATS: return std::vector<float>(attr.floats().begin(), attr.floats().end());
    case FLOAT64S: return std::vector<float>(attr.float64s().begin(), attr.float64s().end());
    case STRINGS: return std::vector<std::string>(attr.strings().begin(), attr.strings().end());
    case VARS: return std::vector<std::string>(attr.vars_name().begin(), attr.vars_name().end());
    default: return static_cast<int64_t>(0);
  }
}

template <class T>
T Expect(const AttrValue& value, std::string_view op, std::string_view attr) {
  const T* typed = std::get_if<T>(&value);
  CHECK(typed != nullptr) << "attribute " << attr << " of " << op << " is registered with another type";
  return *typed;
}

std::string LowerLetters(std::string_view text, bool with_digits) {
  std::string letters;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (with_digits || !is_digit) letters += c;
  }
  return LowerCase(std::move(letters));
}

/// How many letters of `wanted` lie between the words, cut at '_', that it begins and ends with as `name` does: the
/// "erase" of sequence_erase beside sequence_mask.
size_t OwnLetters(std::string_view wanted, std::string_view name) {
  const auto word_at = [](std::string_view text, bool first) {
    const size_t cut = first ? text.find('_') : text.rfind('_');
    if (cut == std::string_view::npos) return text;
    return first ? text.substr(0, cut + 1) : text.substr(cut);
  };
  for (const bool first : {true, false}) {
    std::string_view word = word_at(wanted, first);
    while (!word.empty() && word == word_at(name, first)) {
      wanted = first ? wanted.substr(word.size()) : wanted.substr(0, wanted.size() - word.size());
      name = first ? name.substr(word.size()) : name.substr(0, name.size() - word.size());
      word = word_at(wanted, first);
    }
  }
  return wanted.size();
}

struct AttrShower {
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(float v) const {
    std::ostringstream text;
    text << v;
    return text.str();
  }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return '"' + v + '"'; }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string text = "[";
    for (const T& v : values) text += (text.size() > 1 ? ", " : "") + (*this)(v);
    return text + "]";
  }
};

}  // namespace

const OpDesc::Attr* FindAttr(const OpDesc& op, std::string_view name) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

std::vector<std::string> InputArguments(const OpDesc& op, std::string_view parameter) {
  return Arguments(op.inputs(), parameter);
}

std::vector<std::string> OutputArguments(const OpDesc& op, std::string_view parameter) {
  return Arguments(op.outputs(), parameter);
}

bool Writes(const OpDesc& op, const std::set<std::string, std::less<>>& variables) {
  return std::any_of(op.outputs().begin(), op.outputs().end(), [&](const OpDesc::Var& output) {
    return std::any_of(output.arguments().begin(), output.arguments().end(),
                       [&](const std::string& name) { return variables.contains(name); });
  });
}

void SetInput(OpDesc& op, std::string_view parameter, const std::vector<std::string>& arguments) {
  Bind(*op.mutable_inputs(), parameter, arguments);
}

void SetOutput(OpDesc& op, std::string_view parameter, const std::vector<std::string>& arguments) {
  Bind(*op.mutable_outputs(), parameter, arguments);
}

void SetAttr(OpDesc& op, std::string_view name, const AttrValue& value) {
  auto* attr = const_cast<OpDesc::Attr*>(FindAttr(op, name));
  if (attr == nullptr) attr = op.add_attrs();
  attr->Clear();
  attr->set_name(std::string(name));
  struct Setter {
    OpDesc::Attr* attr;
    void operator()(int64_t v) const {
      const bool small = v >= INT32_MIN && v <= INT32_MAX;
      attr->set_type(small ? INT : LONG);
      if (small) attr->set_i(static_cast<int32_t>(v));
      if (!small) attr->set_l(v);
    }
    void operator()(float v) const {
      attr->set_type(FLOAT);
      attr->set_f(v);
    }
    void operator()(bool v) const {
      attr->set_type(BOOLEAN);
      attr->set_b(v);
    }
    void operator()(const std::string& v) const {
      attr->set_type(STRING);
      attr->set_s(v);
    }
    void operator()(const std::vector<int64_t>& v) const {
      const bool small = std::all_of(v.begin(), v.end(), [](int64_t i) { return i >= INT32_MIN && i <= INT32_MAX; });
      attr->set_type(small ? INTS : LONGS);
      for (const int64_t i : v) {
        if (small) attr->add_ints(static_cast<int32_t>(i));
        if (!small) attr->add_longs(i);
      }
    }
    void operator()(const std::vector<float>& v) const {
      attr->set_type(FLOATS);
      attr->mutable_floats()->Add(v.begin(), v.end());
    }
    void operator()(const std::vector<std::string>& v) const {
      attr->set_type(STRINGS);
      attr->mutable_strings()->Add(v.begin(), v.end());
    }
  };
  std::visit(Setter{attr}, value);
}

AttrValue OpView::Value(std::string_view name) const {
  const AttrInfo* info = info_->FindAttr(name);
  if (info == nullptr && !info_->plugin.empty()) {  // its author's bug: caught where operators are run, and named there
    throw std::out_of_range("attribute \"" + std::string(name) + "\" of " + info_->type +
                            " is not registered: Attr(name, default, doc) does that");
  }
  CHECK(info != nullptr) << "attribute " << name << " of " << info_->type << " is not registered";
  const OpDesc::Attr* attr = millrace::FindAttr(*op_, name);
  if (attr == nullptr) return info->default_value;
  AttrValue value = FromDesc(*attr);
  // Writers of programs mix whole numbers, numbers and truth values; Executable refuses the rest.
  if (value.index() != info->default_value.index()) {
    if (std::holds_alternative<float>(info->default_value) && std::holds_alternative<int64_t>(value)) {
      return static_cast<float>(std::get<int64_t>(value));
    }
    // A number where Paddle 2 has a list: lars_weight_decay of Paddle 1.
    if (std::holds_alternative<std::vector<float>>(info->default_value) && std::holds_alternative<float>(value)) {
      return std::vector<float>{std::get<float>(value)};
    }
    if (std::holds_alternative<bool>(info->default_value) && std::holds_alternative<int64_t>(value)) {
      return std::get<int64_t>(value) != 0;
    }
    if (std::holds_alternative<int64_t>(info->default_value) && std::holds_alternative<bool>(value)) {
      return static_cast<int64_t>(std::get<bool>(value));
    }
  }
  return value;
}

int BlockOf(const OpDesc& op) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    if (attr.type() == BLOCK) return attr.block_idx();
  }
  return -1;
}

int64_t OpView::Int(std::string_view name) const { return Expect<int64_t>(Value(name), type(), name); }
float OpView::Float(std::string_view name) const { return Expect<float>(Value(name), type(), name); }
bool OpView::Bool(std::string_view name) const { return Expect<bool>(Value(name), type(), name); }
std::string OpView::String(std::string_view name) const { return Expect<std::string>(Value(name), type(), name); }
std::vector<int64_t> OpView::Ints(std::string_view name) const {
  return Expect<std::vector<int64_t>>(Value(name), type(), name);
}
std::vector<float> OpView::Floats(std::string_view name) const {
  return Expect<std::vector<float>>(Value(name), type(), name);
}
std::vector<std::string> OpView::Strings(std::string_view name) const {
  return Expect<std::vector<std::string>>(Value(name), type(), name);
}

bool InferShapeContext::HasInput(std::string_view parameter) const { return IsBound(op_->desc().inputs(), parameter); }

bool InferShapeContext::HasOutput(std::string_view parameter) const {
  return IsBound(op_->desc().outputs(), parameter);
}

int InferShapeContext::OutputCount(std::string_view parameter) const {
  const OpDesc::Var* binding = FindBinding(op_->desc().outputs(), parameter);
  return binding == nullptr ? 0 : binding->arguments_size();
}

Result<std::vector<VarMeta>> InferShapeContext::Inputs(std::string_view parameter) const {
  std::vector<VarMeta> metas;
  for (const std::string& name : InputArguments(op_->desc(), parameter)) {
    const auto it = vars_->find(name);
    if (it == vars_->end()) {
      return Error("input " + std::string(parameter) + ": there is no variable \"" + name + "\"");
    }
    metas.push_back(it->second);
  }
  if (metas.empty()) return Error("input " + std::string(parameter) + " is not bound");
  return metas;
}

Result<VarMeta> InferShapeContext::Input(std::string_view parameter) const {
  const OpDesc::Var* binding = FindBinding(op_->desc().inputs(), parameter);
  if (binding != nullptr && binding->arguments_size() == 1) {  // as nearly always: without lists
    if (const auto it = vars_->find(binding->arguments(0)); it != vars_->end()) return it->second;
  }
  MR_ASSIGN(std::vector<VarMeta> metas, Inputs(parameter));
  return metas[0];
}

void InferShapeContext::SetOutput(std::string_view parameter, const VarMeta& meta, int i) {
  const OpDesc::Var* binding = FindBinding(op_->desc().outputs(), parameter);
  if (binding == nullptr || i >= binding->arguments_size() || binding->arguments(i) == kEmptyVar) return;
  VarMeta& target = (*vars_)[binding->arguments(i)];
  const bool persistable = target.persistable;
  target = meta;
  target.persistable = persistable;
}

Status InferShapeContext::Error(std::string message) const {
  std::string where = shown_->type();
  for (const OpDesc::Var& output : shown_->desc().outputs()) {
    if (output.arguments_size() == 0) continue;
    where += " (" + output.parameter() + ": \"" + output.arguments(0) + "\")";
    break;
  }
  return InvalidConfig(where + ": " + std::move(message));
}

bool MayEqual(const Dims& a, const Dims& b) {
  if (a.rank() != b.rank()) return false;
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (!MayEqual(a[axis], b[axis])) return false;
  }
  return true;
}

namespace {

Status InferFromExpansion(InferShapeContext& context, const VarMetas& vars) {
  MR_ASSIGN(const ExpandedOp expanded, ExpandOp(context.op(), vars, context.registry()));
  for (const OpDesc::Var& output : context.op().desc().outputs()) {
    for (int i = 0; i < output.arguments_size(); ++i) {
      const auto made = expanded.vars.find(output.arguments(i));
      if (made != expanded.vars.end()) context.SetOutput(output.parameter(), made->second, i);
    }
  }
  return Status::Ok();
}

}  // namespace

Status InferShapes(const OpView& op, VarMetas& vars, const OpRegistry& registry, const OpView* shown) {
  InferShapeContext context(op, vars, registry, shown);
  try {
    const InferShapeFn rule = op.info().infer_shape;
    Status inferred = rule != nullptr ? rule(context) : InferFromExpansion(context, vars);
    if (!inferred.ok()) return op.info().plugin.empty() ? std::move(inferred) : Harmless(inferred);
  } catch (...) {
    return OperatorThrew(op.info()).Context(op.type());
  }
  for (const OpDesc::Var& output : op.desc().outputs()) {
    for (const std::string& name : output.arguments()) {
      const auto made = vars.find(name);
      if (made == vars.end()) continue;
      const std::span<const int64_t> sizes = made->second.dims.sizes();
      if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < -1; })) {
        return context.Error("output " + output.parameter() + ": variable \"" + name + "\" would have the sizes " +
                             made->second.dims.ToString() + "; a size is 0 or more, or -1 for what a batch decides");
      }
      if (!AreCountable(made->second.dims)) {
        return context.Error("output " + output.parameter() + ": variable \"" + name + "\" would have the sizes " +
                             made->second.dims.ToString() + ", of which no machine holds a tensor");
      }
      if (!made->second.dims.too_many()) continue;
      return context.Error("output " + output.parameter() + ": variable \"" + name + "\" would have the sizes " +
                           made->second.dims.ToString() + "; at most " + std::to_string(Dims::kMaxRank) +
                           " axes are supported");
    }
  }
  return Status::Ok();
}

bool OpInfo::IsForGradient(std::string_view input) const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [input](const ArgInfo& arg) { return arg.for_gradient && arg.name == input; });
}

const AttrInfo* OpInfo::FindAttr(std::string_view name) const {
  for (const AttrInfo& attr : attrs) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

OpBuilder& OpBuilder::Doc(std::string doc) {
  info_->doc = std::move(doc);
  return *this;
}
OpBuilder& OpBuilder::Input(std::string name, std::string doc) {
  info_->inputs.push_back({std::move(name), std::move(doc), false, false});
  return *this;
}
OpBuilder& OpBuilder::Inputs(std::string name, std::string doc) {
  info_->inputs.push_back({std::move(name), std::move(doc), true, false});
  return *this;
}
OpBuilder& OpBuilder::OptionalInput(std::string name, std::string doc) {
  info_->inputs.push_back({std::move(name), std::move(doc), false, true});
  return *this;
}
OpBuilder& OpBuilder::OptionalInputs(std::string name, std::string doc) {
  info_->inputs.push_back({std::move(name), std::move(doc), true, true});
  return *this;
}
OpBuilder& OpBuilder::UnreadInput(std::string name, std::string doc) {
  info_->inputs.push_back({std::move(name), std::move(doc) + "; not read", false, true, false});
  return *this;
}
OpBuilder& OpBuilder::UnreadInputs(std::string name, std::string doc) {
  info_->inputs.push_back({std::move(name), std::move(doc) + "; not read", true, true, false});
  return *this;
}
OpBuilder& OpBuilder::InputForGradient(std::string name, std::string doc) {
  info_->inputs.push_back({.name = std::move(name),
                           .doc = std::move(doc) + "; for the gradient alone",
                           .optional = true,
                           .for_gradient = true});
  return *this;
}
OpBuilder& OpBuilder::Output(std::string name, std::string doc) {
  info_->outputs.push_back({std::move(name), std::move(doc), false, false});
  return *this;
}
OpBuilder& OpBuilder::Outputs(std::string name, std::string doc) {
  info_->outputs.push_back({std::move(name), std::move(doc), true, false});
  return *this;
}
OpBuilder& OpBuilder::OptionalOutput(std::string name, std::string doc) {
  info_->outputs.push_back({std::move(name), std::move(doc), false, true});
  return *this;
}
OpBuilder& OpBuilder::OptionalOutputs(std::string name, std::string doc) {
  info_->outputs.push_back({std::move(name), std::move(doc), true, true});
  return *this;
}
OpBuilder& OpBuilder::UnwrittenOutput(std::string name, std::string doc) {
  info_->outputs.push_back({std::move(name), std::move(doc) + "; not written", false, true, false});
  return *this;
}
OpBuilder& OpBuilder::Attr(std::string name, AttrValue default_value, std::string doc) {
  info_->attrs.push_back({std::move(name), std::move(default_value), std::move(doc)});
  return *this;
}
OpBuilder& OpBuilder::Fixed(std::string name, AttrValue value, std::string doc) {
  info_->attrs.push_back({std::move(name), std::move(value), std::move(doc), true});
  return *this;
}
OpBuilder& OpBuilder::Block(std::string name, std::string doc) {
  Required<int64_t>(std::move(name), std::move(doc));
  info_->attrs.back().is_block = true;
  return *this;
}
OpBuilder& OpBuilder::Effect(std::string what) {
  info_->effect = std::move(what);
  return *this;
}
OpBuilder& OpBuilder::Apart() {
  info_->is_apart = true;
  return *this;
}
OpBuilder& OpBuilder::MakesRows() {
  info_->makes_rows = true;
  return *this;
}
OpBuilder& OpBuilder::TakesUnwritten() {
  info_->takes_unwritten = true;
  return *this;
}
OpBuilder& OpBuilder::InferShape(InferShapeFn fn) {
  info_->infer_shape = fn;
  return *this;
}
OpBuilder& OpBuilder::Grad(GradFn fn) {
  info_->grad = fn;
  return *this;
}
OpBuilder& OpBuilder::Optimizer(std::span<const StateInfo> states, std::span<const StateInfo> scalars) {
  info_->is_optimizer = true;
  info_->states.assign(states.begin(), states.end());
  info_->scalars.assign(scalars.begin(), scalars.end());
  return *this;
}
OpBuilder& OpBuilder::ScalesSteps() {
  info_->scales_steps = true;
  return *this;
}
OpBuilder& OpBuilder::Gradient() {
  info_->is_gradient = true;
  return *this;
}
OpBuilder& OpBuilder::Fused() {
  info_->is_fused = true;
  return *this;
}
OpBuilder& OpBuilder::Expand(ExpandFn fn) {
  info_->expand = fn;
  return *this;
}

namespace {

/// "device "cpu", X float32 or float64, Out int64".
std::string Show(const KernelFor& where) {
  std::string text = "device \"" + where.device + "\"";
  for (const ArgTypes& arg : where.types) {
    text += ", " + arg.argument + " ";
    for (size_t i = 0; i < arg.types.size(); ++i) {
      text += (i > 0 ? " or " : "") + std::string(DTypeName(arg.types[i]));
    }
  }
  return text;
}

bool Contains(const std::vector<DType>& types, DType type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// True when no program fits both: they name an argument whose types have none in common, or another device.
bool AreApart(const KernelFor& one, const KernelFor& other) {
  if (one.device != other.device) return true;
  for (const ArgTypes& a : one.types) {
    for (const ArgTypes& b : other.types) {
      const auto is_shared = [&b](DType type) { return Contains(b.types, type); };
      if (a.argument == b.argument && std::none_of(a.types.begin(), a.types.end(), is_shared)) return true;
    }
  }
  return false;
}

/// What is wrong with an operator's i-th kernel; empty: nothing.
std::string KernelProblem(const OpInfo& op, size_t i) {
  const KernelFor& where = op.kernels[i].where;
  for (const ArgTypes& arg : where.types) {
    const auto is_it = [&arg](const ArgInfo& info) { return info.name == arg.argument; };
    const bool is_there = std::any_of(op.inputs.begin(), op.inputs.end(), is_it) ||
                          std::any_of(op.outputs.begin(), op.outputs.end(), is_it);
    if (!is_there) return "has a kernel for types of \"" + arg.argument + "\", which is no argument of it";
    if (arg.types.empty()) return "has a kernel for no type of \"" + arg.argument + "\"";
  }
  for (size_t other = 0; other < i; ++other) {
    if (AreApart(where, op.kernels[other].where)) continue;
    return "has two kernels for one program: " + Show(op.kernels[other].where) + "; and " + Show(where);
  }
  return "";
}

/// The first variable of an argument; null without one.
const VarMeta* FirstVariable(const OpDesc& op, const std::string& argument, const VarMetas& vars) {
  for (const Bindings* bindings : {&op.inputs(), &op.outputs()}) {
    const OpDesc::Var* binding = FindBinding(*bindings, argument);
    const bool is_named = binding != nullptr && !binding->arguments().empty();
    const auto meta = is_named ? vars.find(binding->arguments(0)) : vars.end();
    if (meta != vars.end()) return &meta->second;
  }
  return nullptr;
}

}  // namespace

Result<const KernelInfo*> ChooseKernel(const OpView& op, const VarMetas& vars, std::string_view device) {
  const auto fits = [&](const ArgTypes& arg) {
    const VarMeta* const meta = FirstVariable(op.desc(), arg.argument, vars);
    return meta != nullptr && Contains(arg.types, meta->dtype);
  };
  std::string known;
  KernelFor wanted{std::string(device), {}};
  for (const KernelInfo& kernel : op.info().kernels) {
    const std::vector<ArgTypes>& types = kernel.where.types;
    if (kernel.where.device == device && std::all_of(types.begin(), types.end(), fits)) return &kernel;
    known += (known.empty() ? "" : "; ") + Show(kernel.where);
    if (kernel.where.device != device) continue;
    for (const ArgTypes& arg : types) {
      const VarMeta* const meta = FirstVariable(op.desc(), arg.argument, vars);
      const auto is_it = [&arg](const ArgTypes& told) { return told.argument == arg.argument; };
      if (meta == nullptr || std::any_of(wanted.types.begin(), wanted.types.end(), is_it)) continue;
      wanted.types.push_back({arg.argument, {meta->dtype}});
    }
  }
  return InvalidConfig("there is no kernel for " + Show(wanted) + "; there are kernels for " + known);
}

OpBuilder OpRegistry::Add(std::string_view type) {
  auto [it, added] = ops_.emplace(std::string(type), std::make_unique<OpInfo>());
  if (!added) duplicates_.emplace_back(type);
  it->second->type = std::string(type);
  return OpBuilder(*it->second);
}

Status OpRegistry::AddKernel(std::string_view type, KernelInfo kernel) {
  const auto op = ops_.find(type);
  if (op == ops_.end()) return NotFound("there is no operator \"" + std::string(type) + "\" to add a kernel to");
  OpInfo& info = *op->second;
  info.kernels.push_back(std::move(kernel));
  const std::string problem = KernelProblem(info, info.kernels.size() - 1);
  if (problem.empty()) return Status::Ok();
  info.kernels.pop_back();
  return InvalidConfig("operator \"" + info.type + "\" " + problem);
}

std::string OpRegistry::Problems() const {
  std::string problems;
  const auto report = [&problems](const std::string& op, const std::string& what) {
    if (!problems.empty()) problems += '\n';
    problems += "operator \"" + op + "\" " + what;
  };
  for (const std::string& type : duplicates_) report(type, "is registered twice");
  for (const auto& [type, info] : ops_) {
    if (info->doc.empty()) report(type, "has no doc");
    if (info->infer_shape == nullptr && info->expand == nullptr) {
      report(type, std::string("has no shape inference") +
                       (type.ends_with("_grad") ? "; AddGradient has it from the Grad({...}) of an operator that was "
                                                  "added before, and names arguments of that operator"
                                                : ""));
    }
    if (info->kernels.empty() && info->expand == nullptr) report(type, "has no kernel");
    for (size_t i = 0; i < info->kernels.size(); ++i) {
      if (const std::string problem = KernelProblem(*info, i); !problem.empty()) report(type, problem);
    }
  }
  return problems;
}

Status OpRegistry::Seal() {
  for (auto& [type, info] : ops_) {
    if (const OpInfo* forward = ForwardOf(*info); forward != nullptr && forward->is_apart) info->is_apart = true;
  }
  std::string problems = Problems();
  return problems.empty() ? Status::Ok() : Internal(std::move(problems));
}

OpRegistry OpRegistry::Copy() const {
  OpRegistry copy;
  for (const auto& [type, info] : ops_) copy.ops_.emplace(type, std::make_unique<OpInfo>(*info));
  copy.duplicates_ = duplicates_;
  copy.plugin_advice_ = plugin_advice_;
  return copy;
}

Status OpRegistry::Adopt(OpRegistry ops, const std::string& plugin, const std::string& version) {
  std::string problems = ops.Problems();
  for (const auto& [type, info] : ops.ops_) {
    const OpInfo* taken = Find(type);
    if (taken == nullptr) continue;
    if (!problems.empty()) problems += '\n';
    problems += "operator \"" + type + "\" exists already" +
                (taken->plugin.empty() ? "" : ", from plugin \"" + taken->plugin + "\"");
  }
  if (!problems.empty()) return InvalidConfig(std::move(problems));
  for (auto& [type, info] : ops.ops_) {
    info->plugin = plugin;
    info->plugin_version = version;
    ops_.emplace(type, std::move(info));
  }
  return Status::Ok();
}

const OpInfo* OpRegistry::Find(std::string_view type) const {
  const auto it = ops_.find(type);
  return it == ops_.end() ? nullptr : it->second.get();
}

const OpInfo* OpRegistry::ForwardOf(const OpInfo& gradient) const {
  // "cross_entropy_grad2" is Paddle's name of that of cross_entropy2.
  constexpr std::string_view kSuffix = "_grad";
  const size_t at = gradient.type.rfind(kSuffix);
  if (!gradient.is_gradient || at == std::string::npos) return nullptr;
  return Find(gradient.type.substr(0, at) + gradient.type.substr(at + kSuffix.size()));
}

std::vector<const OpInfo*> OpRegistry::all() const {
  std::vector<const OpInfo*> infos;
  for (const auto& [type, info] : ops_) infos.push_back(info.get());
  return infos;
}

std::string OpRegistry::Nearest(std::string_view type) const {
  constexpr size_t kLongestType = 100;
  if (type.size() > kLongestType) return "";
  const std::string wanted = LowerLetters(type, true);
  const std::string letters = LowerLetters(type, false);
  std::string nearest;
  int least = static_cast<int>(type.size());
  for (const auto& [name, info] : ops_) {
    if (info->is_fused) continue;
    const std::string lower = LowerLetters(name, true);
    if (LowerLetters(name, false) == letters && lower != wanted) continue;
    const int most = static_cast<int>(std::max<size_t>(OwnLetters(wanted, lower) / 4, 1));
    const int distance = EditDistance(wanted, lower);
    if (distance > most || distance >= least) continue;
    nearest = name;
    least = distance;
  }
  return nearest;
}

std::string OpRegistry::Hint(std::string_view type) const {
  constexpr std::string_view kGrad = "_grad";
  if (type.ends_with(kGrad)) {
    const std::string forward(type.substr(0, type.size() - kGrad.size()));
    if (Find(forward) != nullptr) return "; \"" + forward + "\" is here, without a gradient of this name";
  }
  const std::string nearest = Nearest(type);
  if (!nearest.empty()) return "; did you mean \"" + nearest + "\"?";
  return plugin_advice_.empty() ? "" : "; " + plugin_advice_;
}

bool IsHintAttr(std::string_view name) {
  static constexpr std::string_view kHints[] = {
      "op_role",
      "op_role_var",
      "op_namescope",
      "op_callstack",
      "op_device",
      "with_quant_attr",
      "use_mkldnn",
      "is_test",
      "skip_eager_deletion_vars",
      "mkldnn_data_type",
      "use_quantizer",
      "use_cudnn",
      "cudnn_exhaustive_search",
      "exhaustive_search",
      "workspace_size_MB",
      "use_addto",
      "force_fp32_output",
      "x_data_format",
      "y_data_format",
      "Scale_x",
      "Scale_y",
      "Scale_out",
      "Scale_in",
      "Scale_in_eltwise",
      "Scale_weights",
      "scale_x",
      "scale_y",
      "scale_out",
      "grad_merge_cond_name",
      "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@",
  };
  return std::find(std::begin(kHints), std::end(kHints), name) != std::end(kHints);
}

std::string ShowAttr(const AttrValue& value) { return std::visit(AttrShower{}, value); }

Status OperatorThrew(const OpInfo& op) {
  if (op.plugin.empty()) return Internal("threw " + DescribeException());
  return InvalidConfig("plugin \"" + op.plugin + "\" threw " + DescribeException());
}

Status SameAsX(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  context.SetOutput("Out", x);
  return Status::Ok();
}

}  // namespace millrace
