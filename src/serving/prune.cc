#include "serving/prune.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>
#include <string_view>

#include "core/name_numbers.h"

namespace millrace {
namespace {

/// Names of variables, which must outlive this.
using Names = std::vector<std::string_view>;

/// Maps names to recorded values; a new name gets an empty one.
template <class Said>
class ByName {
 public:
  Said& operator[](std::string_view name) {
    const size_t number = numbers_.Add(name);
    if (number == said_.size()) said_.emplace_back();
    return said_[number];
  }

 private:
  NameNumbers numbers_;
  std::deque<Said> said_;
};

void InsertArguments(const google::protobuf::RepeatedPtrField<OpDesc::Var>& vars, Names* names) {
  for (const OpDesc::Var& var : vars) names->insert(names->end(), var.arguments().begin(), var.arguments().end());
}

bool IsBlock(const OpDesc::Attr& attr) { return attr.type() == BLOCK; }

std::set<std::string_view> OwnNames(const BlockDesc& block) {
  std::set<std::string_view> names;
  for (const VarDesc& var : block.vars()) names.insert(var.name());
  return names;
}

/// Collects what the blocks of an operator, including nested ones, read and write outside.
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
    const auto is_own = [own = OwnNames(block)](std::string_view name) { return own.contains(name); };
    std::remove_copy_if(inner_reads.begin(), inner_reads.end(), std::back_inserter(*reads), is_own);
    std::remove_copy_if(inner_writes.begin(), inner_writes.end(), std::back_inserter(*writes), is_own);
  }
}

/// Whether an operator in a block cannot affect a score: save, or a print without a used output.
bool WritesNothing(const OpDesc& op) {
  const auto& outputs = op.outputs();
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const OpDesc::Var& var) { return var.arguments_size() == 0; }) &&
         std::none_of(op.attrs().begin(), op.attrs().end(), IsBlock);
}

// Saved models do not print; `print` passes its input on.
void TakePrint(OpDesc* op) {
  if (op->type() != "print") return;
  OpDesc assign;
  assign.set_type("assign");
  SetInput(assign, "X", InputArguments(*op, "In"));
  SetOutput(assign, "Out", OutputArguments(*op, "Out"));
  *op = std::move(assign);
}

/// Copies the blocks of an operator of block `parent`, including nested ones, and updates its reference.
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
      TakePrint(&inner);
      CopyBlocks(program, index, &inner, to);
    }
  }
}

// softmax_with_cross_entropy computes Softmax only from Logits; Label and Loss are for training.
template <class IsNeeded>
bool IsForPredictionAlone(const OpDesc& op, const IsNeeded& is_needed) {
  if (op.type() != "softmax_with_cross_entropy") return false;
  const std::vector<std::string> losses = OutputArguments(op, "Loss");
  return std::none_of(losses.begin(), losses.end(), is_needed);
}

OpDesc WithoutLabel(const OpDesc& op) {
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

ProgramDesc WithoutInputsForGradients(const ProgramDesc& program, const OpRegistry& registry) {
  ProgramDesc without = program;
  for (BlockDesc& block : *without.mutable_blocks()) {
    for (OpDesc& op : *block.mutable_ops()) {
      const OpInfo* info = registry.Find(op.type());
      if (info == nullptr) continue;
      auto* inputs = op.mutable_inputs();
      inputs->erase(std::remove_if(inputs->begin(), inputs->end(),
                                   [info](const OpDesc::Var& input) { return info->IsForGradient(input.parameter()); }),
                    inputs->end());
    }
  }
  return without;
}

Result<ProgramDesc> PruneProgram(const ProgramDesc& program, const std::vector<std::string>& targets,
                                 const std::vector<std::string>& given) {
  struct Known {
    bool is_needed = false;
    bool is_given = false;
    bool is_written = false;
    bool is_mentioned = false;
  };
  ByName<Known> variables;
  const auto is_needed = [&variables](std::string_view name) { return variables[name].is_needed; };
  for (const std::string& target : targets) variables[target].is_needed = variables[target].is_mentioned = true;
  for (const std::string& name : given) variables[name].is_given = true;
  const BlockDesc& block = program.blocks(0);
  std::deque<OpDesc> changed;
  std::vector<const OpDesc*> kept;
  for (int i = block.ops_size() - 1; i >= 0; --i) {
    const OpDesc* op = &block.ops(i);
    Names reads;
    Names writes;
    InsertArguments(op->outputs(), &writes);
    InsertOuterNames(program, *op, &reads, &writes);
    if (std::none_of(writes.begin(), writes.end(), is_needed)) continue;
    if (IsForPredictionAlone(*op, is_needed)) {
      op = &changed.emplace_back(WithoutLabel(*op));
      writes.clear();
      InsertArguments(op->outputs(), &writes);
    }
    InsertArguments(op->inputs(), &reads);
    for (const std::string_view name : writes) variables[name].is_written = variables[name].is_mentioned = true;
    for (const std::string_view name : reads) {
      Known& variable = variables[name];
      variable.is_mentioned = true;
      variable.is_needed = variable.is_needed || !variable.is_given;
    }
    kept.push_back(op);
  }
  for (const std::string& target : targets) {
    if (!variables[target].is_written) {
      return InvalidConfig("no operator of the program computes \"" + target + "\"");
    }
  }
  ProgramDesc pruned;
  *pruned.mutable_version() = program.version();
  BlockDesc* out = pruned.add_blocks();
  out->set_idx(0);
  out->set_parent_idx(-1);
  for (const VarDesc& var : block.vars()) {
    if (variables[var.name()].is_mentioned) *out->add_vars() = var;
  }
  for (auto op = kept.rbegin(); op != kept.rend(); ++op) {
    OpDesc* copy = out->add_ops();
    *copy = **op;
    TakePrint(copy);
    CopyBlocks(program, 0, copy, &pruned);
  }
  return pruned;
}

std::vector<std::string> FedVariables(const ProgramDesc& program) {
  struct Known {
    bool is_written = false;
    bool is_fed = false;
  };
  ByName<Known> variables;
  for (const OpDesc& op : program.blocks(0).ops()) {
    for (const OpDesc::Var& input : op.inputs()) {
      for (const std::string& name : input.arguments()) {
        Known& variable = variables[name];
        variable.is_fed = variable.is_fed || !variable.is_written;
      }
    }
    for (const OpDesc::Var& output : op.outputs()) {
      for (const std::string& name : output.arguments()) variables[name].is_written = true;
    }
  }
  std::vector<std::string> names;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (variables[var.name()].is_fed && !var.persistable()) names.push_back(var.name());
  }
  return names;
}

}  // namespace millrace
