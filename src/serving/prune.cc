#include "serving/prune.h"

#include <algorithm>
#include <set>
namespace millrace {
namespace {

using Names = std::set<std::string, std::less<>>;

bool WritesAny(const OpDesc& op, const Names& names) {
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (names.contains(name)) return true;
    }
  }
  return false;
}

// softmax_with_cross_entropy computes Softmax from Logits alone; Label and Loss are for training.
OpDesc WithoutLabel(const OpDesc& op, const Names& needed) {
  if (op.type() != "softmax_with_cross_entropy") return op;
  for (const std::string& loss : OutputArguments(op, "Loss")) {
    if (needed.contains(loss)) return op;
  }
  OpDesc softmax;
  softmax.set_type("softmax");
  SetInput(softmax, "X", InputArguments(op, "Logits"));
  SetOutput(softmax, "Out", OutputArguments(op, "Softmax"));
  if (const OpDesc::Attr* axis = FindAttr(op, "axis"); axis != nullptr) *softmax.add_attrs() = *axis;
  return softmax;
}

constexpr std::string_view kIsTest = "is_test";

}  // namespace

ProgramDesc ForwardProgram(const ProgramDesc& program, const OpRegistry& registry) {
  ProgramDesc forward = program;
  for (BlockDesc& block : *forward.mutable_blocks()) {
    auto* ops = block.mutable_ops();
    const auto trains = [&](const OpDesc& op) {
      const OpInfo* info = registry.Find(op.type());
      return info != nullptr && (info->is_gradient || info->is_optimizer);
    };
    ops->erase(std::remove_if(ops->begin(), ops->end(), trains), ops->end());
    for (OpDesc& op : *ops) {
      const OpInfo* info = registry.Find(op.type());
      if (info != nullptr && info->FindAttr(kIsTest) != nullptr) SetAttr(op, kIsTest, true);
    }
  }
  return forward;
}

Result<ProgramDesc> PruneProgram(const ProgramDesc& program, const std::vector<std::string>& targets,
                                 const std::vector<std::string>& given) {
  const BlockDesc& block = program.blocks(0);
  Names needed(targets.begin(), targets.end());
  Names mentioned(targets.begin(), targets.end());
  const Names stops(given.begin(), given.end());
  Names written;
  std::vector<OpDesc> kept;
  for (int i = block.ops_size() - 1; i >= 0; --i) {
    if (!WritesAny(block.ops(i), needed)) continue;
    OpDesc op = WithoutLabel(block.ops(i), needed);
    for (const OpDesc::Var& output : op.outputs()) {
      mentioned.insert(output.arguments().begin(), output.arguments().end());
      written.insert(output.arguments().begin(), output.arguments().end());
    }
    for (const OpDesc::Var& input : op.inputs()) {
      for (const std::string& name : input.arguments()) {
        mentioned.insert(name);
        if (!stops.contains(name)) needed.insert(name);
      }
    }
    kept.push_back(std::move(op));
  }
  for (const std::string& target : targets) {
    if (!written.contains(target)) return InvalidConfig("no operator of the program computes \"" + target + "\"");
  }
  ProgramDesc pruned;
  *pruned.mutable_version() = program.version();
  BlockDesc* out = pruned.add_blocks();
  out->set_idx(0);
  out->set_parent_idx(-1);
  for (const VarDesc& var : block.vars()) {
    if (mentioned.contains(var.name())) *out->add_vars() = var;
  }
  for (auto op = kept.rbegin(); op != kept.rend(); ++op) *out->add_ops() = std::move(*op);
  return pruned;
}

std::vector<std::string> FedVariables(const ProgramDesc& program) {
  Names written;
  Names fed;
  for (const OpDesc& op : program.blocks(0).ops()) {
    for (const OpDesc::Var& input : op.inputs()) {
      for (const std::string& name : input.arguments()) {
        if (!written.contains(name)) fed.insert(name);
      }
    }
    for (const OpDesc::Var& output : op.outputs()) written.insert(output.arguments().begin(), output.arguments().end());
  }
  std::vector<std::string> names;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (fed.contains(var.name()) && !var.persistable()) names.push_back(var.name());
  }
  return names;
}

}  // namespace millrace
