#include "program/backward.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/edit_distance.h"
#include "core/harmless_text.h"
#include "core/name_numbers.h"
#include "framework.pb.h"
#include "program/block_builder.h"

namespace millrace {
namespace {

/// A set of them.
using Names = NameNumbers;

Status MakingStopped() { return Cancelled("stopped while making gradients"); }

/// Indices of the operators that the loss depends on, in program order.
std::vector<int> PathTo(const BlockDesc& block, std::string_view loss) {
  Names needed;
  needed.Add(loss);
  std::vector<int> path;
  for (int i = block.ops_size() - 1; i >= 0; --i) {
    bool writes = false;
    ForEachArgument(block.ops(i).outputs(), [&](const std::string& name) { writes = writes || needed.Has(name); });
    if (!writes) continue;
    ForEachArgument(block.ops(i).inputs(), [&](const std::string& name) { needed.Add(name); });
    path.push_back(i);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

bool CanHaveGradient(const VarMeta& meta) {
  return meta.kind == VarType::SPARSE_TABLE ||
         (meta.kind == VarType::LOD_TENSOR && (meta.dtype == DType::kFloat32 || meta.dtype == DType::kFloat64));
}

/// The blocks around one, from the inside out.
std::vector<int> BlocksAround(const ProgramDesc& program, int block_index) {
  std::vector<int> blocks;
  for (int outer = block_index; outer > 0;) {
    outer = program.blocks(outer).parent_idx();
    blocks.push_back(outer);
  }
  return blocks;
}

/// The variables whose gradient is worth computing: leaves that may have one, and what is computed from them. Of the
/// variables of blocks around, which hold what was computed there, parameters alone are leaves.
Names FindWanted(const ProgramDesc& program, int block_index, const std::vector<int>& path, const VarMetas& metas) {
  const BlockDesc& block = program.blocks(block_index);
  Names vars;
  std::vector<const VarDesc*> descs;  // by the numbers of vars
  const auto declare = [&](const VarDesc& var) {
    const bool is_new = vars.Add(var.name()) == descs.size();
    if (is_new) descs.push_back(&var);
    return is_new;
  };
  for (const VarDesc& var : block.vars()) declare(var);
  Names around;
  for (const int outer : BlocksAround(program, block_index)) {
    for (const VarDesc& var : program.blocks(outer).vars()) {
      if (declare(var) && !var.is_parameter()) around.Add(var.name());
    }
  }
  Names produced;
  for (const OpDesc& op : block.ops()) {
    ForEachArgument(op.outputs(), [&](const std::string& name) { produced.Add(name); });
  }
  Names wanted;
  const auto allowed = [&](const std::string& name) {
    const size_t var = vars.Find(name);
    return var < vars.size() && !descs[var]->stop_gradient() && CanHaveGradient(metas.find(name)->second);
  };
  for (const int i : path) {
    bool any = false;
    ForEachArgument(block.ops(i).inputs(), [&](const std::string& name) {
      if (!produced.Has(name) && !around.Has(name) && allowed(name)) wanted.Add(name);
      any = any || wanted.Has(name);
    });
    if (!any) continue;
    ForEachArgument(block.ops(i).outputs(), [&](const std::string& name) {
      if (allowed(name)) wanted.Add(name);
    });
  }
  return wanted;
}

/// The gradient of one operator, whose code may be a plugin's.
Result<std::vector<OpDesc>> GradientOf(const OpDesc& op, const OpInfo& info, const Names& wanted, const Names& have) {
  try {
    return info.grad(GradContext(OpView(op, info), wanted, have));
  } catch (...) {
    return OperatorThrew(info).Context(op.type() + ": gradient");
  }
}

std::string OpWhere(const BlockDesc& block, int block_index, int op) {
  return "block " + std::to_string(block_index) + " op[" + std::to_string(op) + "] " + block.ops(op).type() + ": ";
}

void AddLine(const std::string& line, std::string* problems) { *problems += (problems->empty() ? "" : "\n") + line; }

/// A name has one gradient: that of a second value under it, from which the loss is computed too, would go to what the
/// first was computed from. An operator that has no gradient is left to its own message.
std::string WrittenTwice(const BlockDesc& block, const std::vector<int>& path, const Names& wanted,
                         const OpRegistry& registry, int block_index) {
  Names made;
  std::vector<int> makers;  // by the numbers of made
  std::string problems;
  for (const int i : path) {
    const OpDesc& op = block.ops(i);
    bool any_wanted = false;
    ForEachArgument(op.inputs(), [&](const std::string& name) { any_wanted = any_wanted || wanted.Has(name); });
    const OpInfo* info = registry.Find(op.type());
    const bool is_differentiable = info != nullptr && info->grad != nullptr;
    ForEachArgument(op.outputs(), [&](const std::string& name) {
      if (!wanted.Has(name)) return;
      const size_t number = made.Find(name);
      if (number == made.size()) {
        if (any_wanted) {
          made.Add(name);
          makers.push_back(i);
        }
        return;
      }
      const int maker = makers[number];
      if (maker == i || (any_wanted && !is_differentiable)) return;
      AddLine(OpWhere(block, block_index, i) + "writes \"" + name + "\" again, which op[" + std::to_string(maker) +
                  "] made, and the loss has no gradient through both; write to another variable",
              &problems);
    });
  }
  return problems;
}

/// Whether a gradient operator looks at the sizes of an input alone, which a value written over it leaves as they were.
bool ReadsSizesAlone(const OpDesc& gradient, std::string_view parameter) {
  constexpr std::string_view kTypes[] = {"concat_grad", "elementwise_add_grad", "elementwise_sub_grad",
                                         "mean_grad",   "reduce_mean_grad",     "reduce_sum_grad"};
  return (parameter == "X" || parameter == "Y") &&
         std::find(std::begin(kTypes), std::end(kTypes), gradient.type()) != std::end(kTypes);
}

/// Which operators of a block write a variable, in program order.
struct Writers {
  NameNumbers names;
  std::vector<std::vector<int>> ops;  ///< by the numbers of names
};

Writers WritersOf(const BlockDesc& block) {
  Writers writers;
  for (int i = 0; i < block.ops_size(); ++i) {
    ForEachArgument(block.ops(i).outputs(), [&](const std::string& name) {
      const size_t number = writers.names.Add(name);
      if (number == writers.ops.size()) writers.ops.emplace_back();
      if (std::vector<int>& of = writers.ops[number]; of.empty() || of.back() != i) of.push_back(i);
    });
  }
  return writers;
}

/// Gradient operators run behind the whole block: a variable that they read must still hold what the forward operator
/// `i` read or wrote there. `while` and `conditional_block` have what their blocks write among their outputs.
void CheckStillThere(const BlockDesc& block, int block_index, int i, const OpDesc& gradient, const Writers& writers,
                     std::string* problems) {
  const OpDesc& op = block.ops(i);
  std::set<std::string_view> reported;
  for (const OpDesc::Var& binding : gradient.inputs()) {
    if (ReadsSizesAlone(gradient, binding.parameter())) continue;
    const bool reads_before = std::any_of(op.inputs().begin(), op.inputs().end(), [&](const OpDesc::Var& input) {
      return input.parameter() == binding.parameter();
    });
    for (const std::string& name : binding.arguments()) {
      if (name == kEmptyVar || name.ends_with("@GRAD") || !writers.names.Has(name)) continue;
      const std::vector<int>& of = writers.ops[writers.names.Find(name)];
      const auto later =
          std::find_if(of.begin(), of.end(), [&](int writer) { return writer > i || (writer == i && reads_before); });
      if (later == of.end() || !reported.insert(name).second) continue;
      AddLine(OpWhere(block, block_index, i) + "its gradient reads \"" + name + "\", which " +
                  (*later == i ? "it writes over itself"
                               : "op[" + std::to_string(*later) + "] " + block.ops(*later).type() +
                                     " writes over before that") +
                  "; write to another variable there",
              problems);
    }
  }
}

/// Operators of the gradients before names are made unique: several may write one variable.
Result<std::vector<OpDesc>> RawGradients(const BlockDesc& block, const std::vector<int>& path, Names have,
                                         const Names& wanted, const OpRegistry& registry, int block_index,
                                         const std::stop_token& stop) {
  std::vector<OpDesc> grads;
  const Writers writers = WritersOf(block);
  std::string problems = WrittenTwice(block, path, wanted, registry, block_index);
  for (auto i = path.rbegin(); i != path.rend(); ++i) {
    if (stop.stop_requested()) return MakingStopped();
    const OpDesc& op = block.ops(*i);
    bool any_wanted = false;
    bool any_have = false;
    ForEachArgument(op.inputs(), [&](const std::string& name) { any_wanted = any_wanted || wanted.Has(name); });
    ForEachArgument(op.outputs(), [&](const std::string& name) { any_have = any_have || have.Has(name); });
    if (!any_wanted || !any_have) continue;
    const OpInfo* info = registry.Find(op.type());
    if (info == nullptr || info->grad == nullptr) {
      AddLine(OpWhere(block, block_index, *i) +
                  (info == nullptr ? "no such operator" : "has no gradient, but the loss depends on it") + "; mark \"" +
                  op.outputs(0).arguments(0) + "\" stop_gradient to leave it out",
              &problems);
      continue;
    }
    MR_ASSIGN(std::vector<OpDesc> gradients, GradientOf(op, *info, wanted, have));
    for (OpDesc& grad : gradients) {
      if (registry.Find(grad.type()) == nullptr) {
        AddLine(OpWhere(block, block_index, *i) + "its gradient is the operator \"" + Harmless(grad.type()) + "\"" +
                    (info->plugin.empty() ? "" : ", says plugin \"" + info->plugin + "\"") + ", and there is none" +
                    registry.Hint(grad.type()),
                &problems);
        continue;
      }
      ForEachArgument(op.outputs(), [&](const std::string& name) {
        if (have.Has(name)) return;
        const std::string missing = GradName(name);
        for (OpDesc::Var& input : *grad.mutable_inputs()) {
          for (std::string& argument : *input.mutable_arguments()) {
            if (argument == missing) argument = std::string(kEmptyVar);
          }
        }
      });
      CheckStillThere(block, block_index, *i, grad, writers, &problems);
      ForEachArgument(grad.outputs(), [&](const std::string& name) {
        constexpr std::string_view kSuffix = "@GRAD";
        if (name.ends_with(kSuffix)) have.Add(std::string_view(name).substr(0, name.size() - kSuffix.size()));
      });
      grads.push_back(std::move(grad));
    }
  }
  if (!problems.empty()) return InvalidConfig(problems);
  return grads;
}

/// Gives the parts of a gradient with several writers names of their own, and adds them up before the first reader, or
/// at the end when no gradient operator reads it (a parameter).
std::vector<OpDesc> AddUp(std::vector<OpDesc> grads) {
  struct Gradient {
    int writers = 0;
    bool is_pending = false;  // its sum is not there yet
    std::vector<std::string> parts;
  };
  NameNumbers names;
  std::vector<Gradient> gradients;  // by the numbers of names
  for (const OpDesc& op : grads) {
    ForEachArgument(op.outputs(), [&](const std::string& name) {
      const size_t number = names.Add(name);
      if (number == gradients.size()) gradients.emplace_back();
      ++gradients[number].writers;
    });
  }
  std::vector<size_t> order;  // of the first parts
  std::vector<OpDesc> ops;
  const auto add_sum = [&](size_t number) {
    if (number == names.size() || !std::exchange(gradients[number].is_pending, false)) return;
    OpDesc sum;
    sum.set_type("sum");
    SetInput(sum, "X", gradients[number].parts);
    SetOutput(sum, "Out", {std::string(names.name(number))});
    ops.push_back(std::move(sum));
  };
  for (OpDesc& op : grads) {
    ForEachArgument(op.inputs(), [&](const std::string& name) { add_sum(names.Find(name)); });
    for (OpDesc::Var& output : *op.mutable_outputs()) {
      for (std::string& name : *output.mutable_arguments()) {
        if (name == kEmptyVar) continue;
        const size_t number = names.Find(name);
        Gradient& gradient = gradients[number];
        if (gradient.writers < 2) continue;
        if (gradient.parts.empty()) {
          order.push_back(number);
          gradient.is_pending = true;
        }
        gradient.parts.push_back(name + "@RENAME@block0@" + std::to_string(gradient.parts.size()));
        name = gradient.parts.back();
      }
    }
    ops.push_back(std::move(op));
  }
  for (const size_t number : order) add_sum(number);
  return ops;
}

OpDesc LossGradient(std::string_view loss, const VarMeta& meta) {
  OpDesc op;
  op.set_type("fill_constant");
  SetOutput(op, "Out", {GradName(loss)});
  SetAttr(op, "shape", std::vector<int64_t>(meta.dims.sizes().begin(), meta.dims.sizes().end()));
  SetAttr(op, "dtype", static_cast<int64_t>(VarType::FP32));
  SetAttr(op, "value", 1.0f);
  return op;
}

}  // namespace

Result<std::vector<ParamGrad>> AppendBackward(ProgramDesc& program, std::string_view loss, const OpRegistry& registry,
                                              int block_index, const std::stop_token& stop) {
  if (block_index < 0 || block_index >= program.blocks_size()) {
    return InvalidConfig("loss \"" + std::string(loss) + "\": there is no block " + std::to_string(block_index) +
                         "; the program has " + std::to_string(program.blocks_size()));
  }
  MR_ASSIGN(BlockBuilder builder, BlockBuilder::Create(*program.mutable_blocks(block_index), registry));
  BlockDesc& block = builder.block();
  for (const int outer : BlocksAround(program, block_index)) {
    MR_ASSIGN(const BlockBuilder around, BlockBuilder::Create(*program.mutable_blocks(outer), registry));
    builder.See(around.vars());
  }
  const auto loss_meta = builder.vars().find(loss);
  if (loss_meta == builder.vars().end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, meta] : builder.vars()) names.push_back(name);
    const std::string_view nearest = NearestName(loss, names);
    return InvalidConfig("loss: there is no variable \"" + std::string(loss) + "\"" +
                         (nearest.empty() ? "" : "; did you mean \"" + std::string(nearest) + "\"?"));
  }
  if (const int64_t size = loss_meta->second.dims.numel(); size != 1) {
    return InvalidConfig("loss \"" + std::string(loss) + "\" must be one value, take its mean first; its shape is " +
                         loss_meta->second.dims.ToString());
  }
  if (stop.stop_requested()) return MakingStopped();
  const std::vector<int> path = PathTo(block, loss);
  if (stop.stop_requested()) return MakingStopped();
  const Names wanted = FindWanted(program, block_index, path, builder.vars());
  if (!wanted.Has(loss)) {
    return InvalidConfig("loss \"" + std::string(loss) + "\" depends on no parameter that can be trained");
  }
  Names have;
  have.Add(loss);
  MR_ASSIGN(std::vector<OpDesc> raw, RawGradients(block, path, std::move(have), wanted, registry, block_index, stop));
  MR_TRY(builder.Append(LossGradient(loss, loss_meta->second), OpRole::kLossGradient));
  for (OpDesc& op : AddUp(std::move(raw))) {
    if (stop.stop_requested()) return MakingStopped();
    MR_TRY(builder.Append(std::move(op), OpRole::kBackward));
  }

  std::vector<ParamGrad> params;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (!var.is_parameter() || var.stop_gradient() || !builder.Has(GradName(var.name()))) continue;
    params.push_back({var.name(), GradName(var.name())});
  }
  return params;
}

Result<std::vector<OpDesc>> GradientsOf(const std::vector<OpDesc>& ops, const VarMetas& metas, NameNumbers arriving,
                                        const std::vector<std::string>& wanted, const OpRegistry& registry) {
  BlockDesc block;
  std::vector<int> path;
  Names all_wanted;
  for (const std::string& name : wanted) all_wanted.Add(name);
  for (const OpDesc& op : ops) {
    path.push_back(block.ops_size());
    *block.add_ops() = op;
    bool depends = false;
    ForEachArgument(op.inputs(), [&](const std::string& name) { depends = depends || all_wanted.Has(name); });
    if (!depends || registry.Find(op.type())->grad == nullptr) continue;
    ForEachArgument(op.outputs(), [&](const std::string& name) {
      if (CanHaveGradient(metas.find(name)->second)) all_wanted.Add(name);
    });
  }
  MR_ASSIGN(std::vector<OpDesc> raw, RawGradients(block, path, std::move(arriving), all_wanted, registry, 0, {}));
  return AddUp(std::move(raw));
}

}  // namespace millrace
