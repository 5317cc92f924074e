#include "serving/prune.h"

#include <algorithm>
#include <set>

namespace millrace {
namespace {

using Names = std::set<std::string, std::less<>>;

void InsertArguments(const google::protobuf::RepeatedPtrField<OpDesc::Var>& vars, Names* names) {
  for (const OpDesc::Var& var : vars) names->insert(var.arguments().begin(), var.arguments().end());
}

bool IsAnyOf(const Names& some, const Names& names) {
  return std::any_of(some.begin(), some.end(), [&](const std::string& name) { return names.contains(name); });
}

bool IsBlock(const OpDesc::Attr& attr) { return attr.type() == BLOCK; }

/// What the blocks of an operator, and those within them, read and write of the blocks around them.
void InsertOuterNames(const ProgramDesc& program, const OpDesc& op, Names* reads, Names* writes) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    if (!IsBlock(attr)) continue;
    const BlockDesc& block = program.blocks(attr.block_idx());
    Names inner_reads;
    Names inner_writes;
    for (const OpDesc& inner : block.ops()) {
      InsertArguments(inner.inputs(), &inner_reads);
      InsertArguments(inner.outputs(), &inner_writes);
      InsertOuterNames(program, inner, &inner_reads, &inner_writes);
    }
    for (const VarDesc& var : block.vars()) {
      inner_reads.erase(var.name());
      inner_writes.erase(var.name());
    }
    reads->merge(inner_reads);
    writes->merge(inner_writes);
  }
}

/// An operator of a block that no score can depend on: save, or a print beside the way.
bool WritesNothing(const OpDesc& op) {
  const auto& outputs = op.outputs();
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const OpDesc::Var& var) { return var.arguments_size() == 0; }) &&
         std::none_of(op.attrs().begin(), op.attrs().end(), IsBlock);
}

// Saved models compute and print nothing; `print` hands on what it shows.
OpDesc WithoutPrint(const OpDesc& op) {
  if (op.type() != "print") return op;
  OpDesc assign;
  assign.set_type("assign");
  SetInput(assign, "X", InputArguments(op, "In"));
  SetOutput(assign, "Out", OutputArguments(op, "Out"));
  return assign;
}

/// Copies the blocks of an operator of block `parent`, and those within them, and lets it name the copies.
void CopyBlocks(const ProgramDesc& program, int parent, OpDesc* op, ProgramDesc* to) {
  for (OpDesc::Attr& attr : *op->mutable_attrs()) {
    if (!IsBlock(attr)) continue;
    const int index = to->blocks_size();
    BlockDesc* copy = to->add_blocks();
    *copy = program.blocks(attr.block_idx());
    copy->set_idx(index);
    copy->set_parent_idx(parent);
    attr.set_block_idx(index);
    auto* ops = copy->mutable_ops();
    ops->erase(std::remove_if(ops->begin(), ops->end(), WritesNothing), ops->end());
    for (OpDesc& inner : *ops) {
      inner = WithoutPrint(inner);
      CopyBlocks(program, index, &inner, to);
    }
  }
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
    Names reads;
    Names writes;
    InsertArguments(block.ops(i).outputs(), &writes);
    InsertOuterNames(program, block.ops(i), &reads, &writes);
    if (!IsAnyOf(writes, needed)) continue;
    OpDesc op = WithoutLabel(block.ops(i), needed);
    if (op.type() != block.ops(i).type()) {
      writes.clear();
      InsertArguments(op.outputs(), &writes);
    }
    InsertArguments(op.inputs(), &reads);
    mentioned.insert(writes.begin(), writes.end());
    mentioned.insert(reads.begin(), reads.end());
    written.merge(writes);
    for (const std::string& name : reads) {
      if (!stops.contains(name)) needed.insert(name);
    }
    kept.push_back(WithoutPrint(op));
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
  for (auto op = kept.rbegin(); op != kept.rend(); ++op) {
    OpDesc* copy = out->add_ops();
    *copy = std::move(*op);
    CopyBlocks(program, 0, copy, &pruned);
  }
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
