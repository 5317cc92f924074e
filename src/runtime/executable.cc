#include "runtime/executable.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/edit_distance.h"
#include "program/block_names.h"
#include "program/gradient_check.h"
#include "program/op_check.h"
#include "program/passes/fusion.h"
#include "program/passes/section_fusion.h"
#include "program/var_meta.h"
#include "runtime/composite_kernel.h"
#include "runtime/plugin_output_check.h"

namespace millrace {
namespace {

/// An operator and its position in messages.
struct Place {
  int block;
  size_t index;
};

std::string Where(Place place) {
  return "block " + std::to_string(place.block) + " op[" + std::to_string(place.index) + "]";
}

std::string Where(Place place, const OpDesc& op) { return Where(place) + " " + op.type(); }

/// Collects messages, one per line.
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

/// Blocks are processed by recursive functions.
constexpr int kMostNested = 100;

std::string TooDeep() { return std::to_string(kMostNested) + " others; no program needs more"; }

/// The first block nested too deeply, according to the blocks' parents. Missing or circular parents are reported
/// elsewhere.
Status CheckNesting(const ProgramDesc& program) {
  for (int block = 0; block < program.blocks_size(); ++block) {
    int depth = 0;
    int parent = program.blocks(block).parent_idx();
    while (parent > 0 && parent < program.blocks_size() && depth <= kMostNested) {
      parent = program.blocks(parent).parent_idx();
      ++depth;
    }
    if (depth <= kMostNested) continue;
    return InvalidConfig("block " + std::to_string(block) + " lies within " + TooDeep());
  }
  return Status::Ok();
}

Status CompilingStopped() { return Cancelled("stopped while compiling a program"); }

/// Keeps the operators needed for `fetches`, without gradients and optimizers.
OpList KeepForward(const OpList& ops, const OpRegistry& registry, const std::vector<std::string>& fetches) {
  std::set<std::string, std::less<>> needed(fetches.begin(), fetches.end());
  std::vector<OpList::Shared> kept;
  for (auto op = ops.shared().rbegin(); op != ops.shared().rend(); ++op) {
    const OpInfo* info = registry.Find((*op)->type());
    if (info != nullptr && (info->is_gradient || info->is_optimizer)) continue;
    if (!Writes(**op, needed)) continue;
    for (const OpDesc::Var& input : (*op)->inputs()) {
      needed.insert(input.arguments().begin(), input.arguments().end());
    }
    kept.push_back(*op);
  }
  std::reverse(kept.begin(), kept.end());
  return OpList(std::move(kept));
}

/// Checks, describes and fuses block 0 and the blocks run by its operators, one step at a time over all of them.
class BlockCompiler {
 public:
  BlockCompiler(std::shared_ptr<const ProgramDesc> program, const OpRegistry& registry, const CompileOptions& options)
      : program_(std::move(program)), registry_(registry), options_(options) {
    blocks.resize(static_cast<size_t>(program_->blocks_size()));
  }

  Status Check() {
    CollectBlock(0, 0);
    for (const int block : order_) {
      for (const OpDesc& op : Ops(block)) {
        if (registry_.Find(op.type()) == nullptr) ++unknown_[op.type()].count;
      }
    }
    for (const int block : order_) {
      for (size_t i = 0; i < Ops(block).size(); ++i) {
        MR_TRY(GoOn());
        CheckOp({block, i}, Ops(block)[i]);
      }
    }
    // A missing gradient of our own operator is reported with advice.
    const auto is_foreign = [this](const auto& unknown) {
      const std::string& type = unknown.first;
      constexpr std::string_view kGrad = "_grad";
      const bool is_ours =
          type.ends_with(kGrad) && registry_.Find(type.substr(0, type.size() - kGrad.size())) != nullptr;
      return !is_ours && registry_.Nearest(type).empty();
    };
    if (std::any_of(unknown_.begin(), unknown_.end(), is_foreign)) {
      problems_.Add("trainer --list_ops shows the operators that there are, docs/operators.md what Paddle has beyond" +
                    (registry_.plugin_advice().empty() ? "" : "; " + registry_.plugin_advice()));
    }
    return problems_.ToStatus();
  }

  /// An operator that runs a block is described before the block, whose operators see its inputs.
  Status InferShapes() {
    MR_TRY(InferBlock(0));
    return problems_.ToStatus();
  }

  Status CheckFetches() {
    for (const std::string& fetch : options_.fetches) {
      if (vars.contains(fetch)) continue;
      std::vector<std::string_view> names;
      for (const auto& [known, meta] : vars) names.push_back(known);
      problems_.Add("there is no variable \"" + fetch + "\" to fetch" + DidYouMean(fetch, names));
    }
    return problems_.ToStatus();
  }

  Status Fuse(std::vector<OpRange>* parts) {
    for (const int block : order_) {
      MR_TRY(GoOn());
      if (block == 0 && !options_.parts.empty()) {
        SectionFusion sections(Ops(0), options_.parts);
        if (options_.fuse) MR_TRY(sections.Run(vars, registry_, KeptBy(0)));
        Ops(0) = std::move(sections).Take(parts);
      } else if (options_.fuse) {
        MR_TRY(ApplyFusionPasses(Ops(block), vars, registry_, KeptBy(block), options_.stop));
      }
    }
    return Status::Ok();
  }

  std::vector<OpList> blocks;
  VarMetas vars;
  std::map<std::string, VarDesc, std::less<>> readers;
  std::map<const OpDesc*, ExpandedOp> expansions;
  VarMetas temporaries;  ///< of all expansions

 private:
  OpList& Ops(int block) { return blocks[static_cast<size_t>(block)]; }
  Status GoOn() const { return options_.stop.stop_requested() ? CompilingStopped() : Status::Ok(); }

  void CollectBlock(int number, int depth) {
    order_.push_back(number);
    const BlockDesc& block = program_->blocks(number);
    for (const VarDesc& var : block.vars()) {
      Result<VarMeta> meta = ToMeta(var);
      if (!meta.ok()) {
        problems_.Add(meta.status().message());
      } else if (!vars.emplace(var.name(), *meta).second) {
        problems_.Add("block " + std::to_string(number) + " declares \"" + var.name() + "\" twice");
      }
      if (var.type().type() == VarType::READER) readers.emplace(var.name(), var);
    }
    OpList& ops = Ops(number);
    for (const OpDesc& op : block.ops()) {
      if (!IsSkipped(op, options_.skip_ops)) ops.Add(OpList::Shared(program_, &op));
    }
    if (options_.forward_only) {
      ops = number == 0 ? KeepForward(ops, registry_, options_.fetches) : DropUpdates(std::move(ops));
    }
    for (size_t i = 0; i < ops.size(); ++i) CollectBlockOf({number, i}, ops[i], depth);
  }

  void CollectBlockOf(Place place, const OpDesc& op, int depth) {
    const int block = BlockOf(op);
    if (block < 0) return;
    if (depth == kMostNested) {
      problems_.Add(Where(place, op) + ": runs a block within " + TooDeep());
    } else if (block >= program_->blocks_size()) {
      problems_.Add(Where(place, op) + ": runs block " + std::to_string(block) + ", but the program has " +
                    std::to_string(program_->blocks_size()) + " blocks");
    } else if (std::find(order_.begin(), order_.end(), block) != order_.end()) {
      problems_.Add(Where(place, op) + ": runs block " + std::to_string(block) + ", which runs already");
    } else {
      CollectBlock(block, depth + 1);
    }
  }

  OpList DropUpdates(OpList ops) const {
    std::vector<OpList::Shared> kept = std::move(ops).shared();
    std::erase_if(kept, [this](const OpList::Shared& op) {
      const OpInfo* info = registry_.Find(op->type());
      return info != nullptr && (info->is_gradient || info->is_optimizer);
    });
    return OpList(std::move(kept));
  }

  /// Unregistered types are reported at their first operator, with a count.
  void CheckOp(Place place, const OpDesc& op) {
    const auto unknown = unknown_.find(op.type());
    if (unknown != unknown_.end() && std::exchange(unknown->second.is_told, true)) return;
    std::vector<std::string> found;
    millrace::CheckOp(Where(place, op), op, vars, registry_, &found);
    for (std::string& problem : found) {
      if (unknown != unknown_.end() && unknown->second.count > 1) {
        problem += "; the program has " + std::to_string(unknown->second.count) + " of them";
      }
      problems_.Add(problem);
    }
  }

  Status InferBlock(int block) {
    for (size_t i = 0; i < Ops(block).size(); ++i) {
      MR_TRY(GoOn());
      const OpDesc& op = Ops(block)[i];
      const OpView view(op, *registry_.Find(op.type()));
      const VarMetas updated = UpdatedInputs(op);
      Status fits = millrace::InferShapes(view, vars, registry_);
      if (fits.ok()) fits = CheckUpdated(op, updated);
      if (fits.ok()) fits = CheckGradient(view, registry_, vars);
      if (fits.ok() && view.info().expand != nullptr) fits = Expand(view);
      if (!fits.ok()) problems_.Add(Where({block, i}) + " " + fits.message());
      if (BlockOf(op) >= 0) MR_TRY(InferBlock(BlockOf(op)));
    }
    return Status::Ok();
  }

  /// Expands an operator that has no kernel for the device.
  Status Expand(const OpView& op) {
    if (ChooseKernel(op, vars, options_.device->name()).ok()) return Status::Ok();
    MR_ASSIGN(ExpandedOp expanded, ExpandOp(op, vars, registry_, next_number_));
    next_number_ += static_cast<int>(expanded.vars.size());
    temporaries.insert(expanded.temporaries.begin(), expanded.temporaries.end());
    expansions[&op.desc()] = std::move(expanded);
    return Status::Ok();
  }

  /// Inputs that an operator also writes, except the first, which a reshape may use in place. In a gradient operator,
  /// only an incoming gradient is exempt, because X is still read while Y@GRAD is written.
  VarMetas UpdatedInputs(const OpDesc& op) const {
    VarMetas updated;
    if (BlockOf(op) >= 0) return updated;
    std::vector<std::string_view> outputs;
    for (const OpDesc::Var& output : op.outputs()) {
      outputs.insert(outputs.end(), output.arguments().begin(), output.arguments().end());
    }
    std::sort(outputs.begin(), outputs.end());
    const bool is_gradient = registry_.Find(op.type())->is_gradient;
    bool is_first = true;
    for (const OpDesc::Var& input : op.inputs()) {
      if (is_gradient && !input.parameter().ends_with("@GRAD")) is_first = false;
      for (const std::string& name : input.arguments()) {
        if (std::exchange(is_first, false) || !std::binary_search(outputs.begin(), outputs.end(), name)) continue;
        if (const auto meta = vars.find(name); meta != vars.end()) updated.insert(*meta);
      }
    }
    return updated;
  }

  /// Fails if an output with the same variable as an input would change its type or size: resizing it would invalidate
  /// the kernel's input.
  Status CheckUpdated(const OpDesc& op, const VarMetas& updated) const {
    for (const auto& [name, before] : updated) {
      const VarMeta& after = vars.at(name);
      if (after.dims.rank() == 0) continue;  // as its kernel finds it
      const bool is_one_size = before.dims == after.dims || (before.dims.numel() >= 0 && after.dims.numel() >= 0 &&
                                                             before.dims.numel() == after.dims.numel());
      if (before.dtype == after.dtype && is_one_size) continue;
      return InvalidConfig(op.type() + ": variable \"" + name + "\" is an input and an output, and would become " +
                           ShownMeta(name, after.dtype, after.dims) + " where it is " +
                           ShownMeta(name, before.dtype, before.dims) + "; give the output a variable of its own");
    }
    return Status::Ok();
  }

  /// Variables that fusion in a block must keep: fetched ones, and those not local to the block.
  std::vector<std::string> KeptBy(int block) {
    std::vector<std::string> kept = options_.fetches;
    for (const int other : order_) {
      if (other == block) continue;
      for (const VarDesc& var : program_->blocks(other).vars()) kept.push_back(var.name());
      for (const OpDesc& op : Ops(other)) {
        for (const OpDesc::Var& input : op.inputs()) {
          kept.insert(kept.end(), input.arguments().begin(), input.arguments().end());
        }
      }
    }
    return kept;
  }

  const std::shared_ptr<const ProgramDesc> program_;
  const OpRegistry& registry_;
  const CompileOptions& options_;
  struct Unknown {
    int count = 0;
    bool is_told = false;
  };

  std::vector<int> order_;                               ///< blocks in execution order, each after the block that runs
                                                         ///< it
  std::map<std::string, Unknown, std::less<>> unknown_;  ///< unregistered types
  Problems problems_;
  int next_number_ = 0;  ///< of a temporary
};

}  // namespace

bool IsSkipped(const OpDesc& op, const std::vector<std::string>& skip_ops) {
  return std::any_of(skip_ops.begin(), skip_ops.end(),
                     [&](const std::string& part) { return op.type().find(part) != std::string::npos; });
}

Result<std::unique_ptr<const Executable>> Executable::Compile(const ProgramDesc& program, const OpRegistry& registry,
                                                              const CompileOptions& options) {
  return Compile(std::make_shared<const ProgramDesc>(program), registry, options);
}

Result<std::unique_ptr<const Executable>> Executable::Compile(std::shared_ptr<const ProgramDesc> program,
                                                              const OpRegistry& registry,
                                                              const CompileOptions& options) {
  if (program->blocks_size() == 0) return InvalidConfig("the program has no blocks");
  MR_TRY(CheckNesting(*program));
  if (options.stop.stop_requested()) return CompilingStopped();
  std::unique_ptr<Executable> executable(new Executable);
  executable->registry_ = &registry;
  executable->device_ = options.device;
  BlockCompiler compiler(WithOwnNames(std::move(program)), registry, options);
  MR_TRY(compiler.Check());
  MR_TRY(compiler.InferShapes());
  MR_TRY(compiler.CheckFetches());
  MR_TRY(compiler.Fuse(&executable->parts_));
  executable->blocks_ = std::move(compiler.blocks);
  executable->vars_ = std::move(compiler.vars);
  executable->readers_ = std::move(compiler.readers);
  executable->vars_.merge(compiler.temporaries);
  executable->expansions_ = std::move(compiler.expansions);
  if (options.stop.stop_requested()) return CompilingStopped();
  MR_TRY(executable->ChooseKernels());
  return std::unique_ptr<const Executable>(std::move(executable));
}

Status Executable::ChooseKernels() {
  Problems problems;
  kernels_.resize(blocks_.size());
  for (size_t block = 0; block < blocks_.size(); ++block) {
    for (size_t i = 0; i < blocks_[block].size(); ++i) {
      const OpDesc& op = blocks_[block][i];
      const auto choose = [&](const OpDesc& of) -> KernelFactory {
        const auto kernel = ChooseKernel(OpView(of, *registry_->Find(of.type())), vars_, device_->name());
        if (kernel.ok()) return (*kernel)->create;
        problems.Add(Where({static_cast<int>(block), i}, op) + ": " + (&of == &op ? "" : of.type() + ": ") +
                     kernel.status().message());
        return nullptr;
      };
      const ExpandedOp* const expanded = FindExpansion(op);
      if (expanded != nullptr) std::for_each(expanded->ops.begin(), expanded->ops.end(), choose);
      kernels_[block].push_back(expanded == nullptr ? choose(op) : CompositeKernel::Create);
    }
  }
  return problems.ToStatus();
}

const ExpandedOp* Executable::FindExpansion(const OpDesc& op) const {
  const auto expansion = expansions_.find(&op);
  return expansion == expansions_.end() ? nullptr : &expansion->second;
}

const VarDesc* Executable::FindReader(std::string_view name) const {
  const auto it = readers_.find(name);
  return it == readers_.end() ? nullptr : &it->second;
}

bool Executable::HoldsLoop(const OpDesc& op) const {
  if (BlockOf(op) < 0) return false;
  const OpList& inner = ops(BlockOf(op));
  return op.type() == "while" ||
         std::any_of(inner.begin(), inner.end(), [this](const OpDesc& o) { return HoldsLoop(o); });
}

bool Executable::WritesForGood(const OpDesc& op) const {
  if (registry_->Find(op.type())->is_optimizer) return true;
  for (const OpDesc::Var& output : op.outputs()) {
    for (const std::string& name : output.arguments()) {
      if (const auto it = vars_.find(name); it != vars_.end() && it->second.persistable) return true;
    }
  }
  if (BlockOf(op) < 0) return false;
  const OpList& inner = ops(BlockOf(op));
  return std::any_of(inner.begin(), inner.end(), [this](const OpDesc& o) { return WritesForGood(o); });
}

bool Executable::Writes(std::string_view variable) const {
  const std::set<std::string, std::less<>> names = {std::string(variable)};
  const auto writes = [&names](const OpDesc& op) { return millrace::Writes(op, names); };
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [&](const OpList& ops) { return std::any_of(ops.begin(), ops.end(), writes); });
}

bool Executable::IsSideEffectFree(size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (WritesForGood(ops()[i])) return false;
  }
  return true;
}

bool Executable::IsSideEffectFreeWhenStopped() const {
  size_t end = ops().size();
  while (end > 0 && !HoldsLoop(ops()[end - 1])) --end;
  return IsSideEffectFree(end);
}

std::string PrintOps(const OpList& ops) {
  std::string text = "len(ops)=" + std::to_string(ops.size()) + "\n";
  for (size_t i = 0; i < ops.size(); ++i) text += "op[" + std::to_string(i) + "]->Type(): " + ops[i].type() + "\n";
  return text;
}

}  // namespace millrace
